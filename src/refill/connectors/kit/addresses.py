"""Which addresses a tenant may make us talk to.

A name is resolved once and the address is pinned: a second look-up could give another answer.
Brokers and databases may be private or on this machine; webhooks may not, unless the operator
says so. What a cloud serves its machines' credentials from is never reached.
"""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from refill.domain.errors import SinkRefused, SinkUnavailable

Address = IPv4Address | IPv6Address

# clouds whose metadata service is not at a link-local address
_METADATA = (
    ip_network("100.100.100.200/32"),
    ip_network("168.63.129.16/32"),
    ip_network("192.0.0.192/32"),
    ip_network("fd00:ec2::/32"),
    ip_network("fd20:ce::254/128"),
)
_NAT64 = ip_network("64:ff9b::/96")
_SHARED = ip_network("100.64.0.0/10")


def resolve(host: str, port: int) -> tuple[Address, ...]:
    """Every address of the host, in the resolver's order."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as exc:
        raise SinkUnavailable(
            f"The name {host!r} could not be resolved; check it, or the resolver."
        ) from exc
    return tuple(dict.fromkeys(ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))


def pin_public(host: str, port: int, allow_private: bool) -> str:
    """The one address to connect to, for requests that a tenant aims."""
    addresses = resolve(host, port)
    for address in addresses:
        if is_forbidden(address) or (is_private(address) and not allow_private):
            raise SinkRefused(
                f"{host!r} leads to {address}, which webhooks may not reach: it is not a public "
                "address. An operator may set REFILL_ALLOW_PRIVATE_HOSTS for private ones."
            )
    return str(addresses[0])


def refuse_metadata(host: str, port: int) -> None:
    """For brokers: anything but the addresses that hand out a machine's credentials."""
    for address in resolve(host, port):
        if is_forbidden(address):
            raise SinkRefused(f"{host!r} leads to {address}, where no broker can be.")


def is_forbidden(address: Address) -> bool:
    """Never reached, whatever the operator allows."""
    address = _plain(address)
    return (
        address.is_link_local
        or address.is_multicast
        or any(address in network for network in _METADATA)
    )


def is_private(address: Address) -> bool:
    """This machine, its network, or nowhere at all."""
    address = _plain(address)
    return not address.is_global or address in _SHARED


def _plain(address: Address) -> Address:
    """An IPv4 address in an IPv6 dress is what it is underneath."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped:
            return address.ipv4_mapped
        if address.sixtofour:
            return address.sixtofour
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address
