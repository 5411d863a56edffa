"""What a team stores beside its pipelines, for options of connectors to refer to."""

from enum import StrEnum
from typing import TypeAlias

from refill.domain.pipeline import HttpEndpoint


class Stored(StrEnum):
    """The kinds there are; the value is how a sentence calls one."""

    HTTP_ENDPOINT = "HTTP endpoint"


StoredObject: TypeAlias = HttpEndpoint  # a union, once there are more
