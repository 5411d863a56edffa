"""The suite leaves nobody out: what can be read from has a bed."""

from refill.connectors.kit.contract import OURS
from refill.connectors.kit.registry import load_connectors
from tests.contract.beds import find_beds
from tests.contract.source import beds
from tests.contract.source.bed import SourceBed


def test_every_source_has_a_bed() -> None:
    found = {bed.connector_type for bed in find_beds(SourceBed, beds)}
    ours = [each for each in load_connectors().values() if each.distribution == OURS]
    assert {each.type for each in ours if each.is_source} <= found


def test_the_suite_is_nobodys_alone() -> None:
    """One source's habits would pass for the contract."""
    found = find_beds(SourceBed, beds)
    assert {bed.keyed for bed in found} == {True, False}
    assert {bed.dated for bed in found} == {True, False}
    assert len({bed.connector_type for bed in found}) > 1
