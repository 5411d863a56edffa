"""Which addresses a tenant may make us reach."""

from ipaddress import ip_address

import pytest

from refill.connectors.kit.addresses import ANYWHERE, NetworkPolicy, is_forbidden, is_private
from refill.domain.errors import SinkRefused, SinkUnavailable

METADATA = [
    "169.254.169.254",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "fe80::1",
    "fd00:ec2::254",
    "100.100.100.200",
    "168.63.129.16",
    "224.0.0.1",
    "::a9fe:a9fe",
    "64:ff9b:1::a9fe:a9fe",
]
PRIVATE = [
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "0.0.0.0",
    "::1",
    "::ffff:127.0.0.1",
    "fc00::1",
    "2002:7f00:1::",
    "::7f00:1",
    "::808:808",
    "64:ff9b:1::808:808",
    "64:ff9b:1:abcd::1",
]


@pytest.mark.parametrize("address", METADATA)
def test_what_hands_out_credentials_is_never_reached(address: str) -> None:
    assert is_forbidden(ip_address(address))
    with pytest.raises(SinkRefused):
        NetworkPolicy(allow_private=True).addresses(address, 80, public=True)
    with pytest.raises(SinkRefused):
        ANYWHERE.addresses(address, 80)


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_for_operators_to_allow(address: str) -> None:
    assert is_private(ip_address(address))
    with pytest.raises(SinkRefused, match="REFILL_ALLOW_PRIVATE_HOSTS"):
        ANYWHERE.addresses(address, 80, public=True)


def test_brokers_may_be_private_and_on_this_machine() -> None:
    assert ANYWHERE.addresses("127.0.0.1", 9092) == ("127.0.0.1",)
    assert ANYWHERE.addresses("10.0.0.1", 9092) == ("10.0.0.1",)


def test_public_addresses_are_pinned() -> None:
    assert ANYWHERE.addresses("93.184.215.14", 443, public=True) == ("93.184.215.14",)


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "127.1"])
def test_other_spellings_of_this_machine_are_this_machine(host: str) -> None:
    with pytest.raises((SinkRefused, SinkUnavailable)):
        ANYWHERE.addresses(host, 80, public=True)


def test_a_name_that_leads_nowhere_may_come_back() -> None:
    with pytest.raises(SinkUnavailable, match="could not be resolved"):
        ANYWHERE.addresses("no-such-host.invalid", 80, public=True)
