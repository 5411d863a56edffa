"""The suite leaves nobody out: what can be written to has a bed, in every role it has."""

from refill.connectors.kit.contract import OURS
from refill.connectors.kit.registry import load_connectors
from refill.domain.pipeline import Kind
from tests.contract.beds import find_beds
from tests.contract.sinks import beds
from tests.contract.sinks.bed import SinkBed


def test_every_sink_and_every_destination_has_a_bed() -> None:
    ours = [each for each in load_connectors().values() if each.distribution == OURS]
    roles = {(each.type, Kind.SINK) for each in ours if each.is_sink}
    roles |= {(each.type, Kind.TRANSFER) for each in ours if each.is_destination}
    assert roles == {(bed.connector_type, bed.kind) for bed in find_beds(SinkBed, beds)}
