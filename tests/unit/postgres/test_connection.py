"""Where a database may be."""

import pytest

from refill.connectors.postgres.connection import resolve
from refill.domain.errors import SourceRefused


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "100.100.100.200",
        "168.63.129.16",
        "64:ff9b::a9fe:a9fe",
        "fd00:ec2::254",
        "fe80::1",
    ],
)
def test_no_database_is_where_a_cloud_hands_out_credentials(address: str) -> None:
    with pytest.raises(SourceRefused, match="no server can be"):
        resolve(address, 5432)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.1.2.3", "192.168.1.1", "fc00::1"])
def test_a_database_may_be_private_or_on_this_machine(address: str) -> None:
    assert resolve(address, 5432) == [address]
