"""What it means when a constraint of the schema refuses a row."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import IntegrityError

from refill.domain.errors import Conflict, InUse


@contextmanager
def named(kind: str, name: str) -> Iterator[None]:
    """Around the writing of a pipeline, or of what it connects."""
    try:
        yield
    except IntegrityError as error:
        text = str(error.orig).lower()
        if "destination_table" in text:
            raise Conflict(
                "Another transfer writes to this table of the destination: choose another table.",
                field="destination_table",
            ) from error
        if "foreign key" in text:
            raise Conflict(
                f"The {kind} {name!r} refers to something that was deleted meanwhile: "
                "look again and choose what is there."
            ) from error
        if "name" in text:
            raise Conflict(
                f"A {kind} with the name {name!r} is there already: choose another name.",
                field="name",
            ) from error
        raise Conflict(f"A {kind} with this id is there already.", field="id") from error


@contextmanager
def unused(message: str) -> Iterator[None]:
    """Around a deletion."""
    try:
        yield
    except IntegrityError as error:
        raise InUse(message) from error
