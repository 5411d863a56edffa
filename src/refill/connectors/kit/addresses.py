"""Which addresses a tenant may make us talk to: one policy, asked by every connector.

A name is resolved once and the address is what is connected to: a second look-up could give
another answer. Brokers and databases may be private or on this machine; webhooks may not, unless
the operator says so. What a cloud serves its machines' credentials from is never reached.
"""

import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

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
_SHARED = ip_network("100.64.0.0/10")
# an IPv4 address in their last 32 bits, for the translator of a network to unwrap
_NAT64 = IPv6Network("64:ff9b::/96")
_NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = IPv6Network("::/96")


@dataclass(frozen=True, slots=True)
class NetworkPolicy:
    """What the operator decides. `allowed` and `refused` are networks, separated by commas:
    where any are allowed, nothing else is reached, and they are, private or not."""

    allow_private: bool = False  # for webhooks
    allowed: str = ""
    refused: str = ""

    def addresses(self, host: str, port: int, *, public: bool = False) -> tuple[str, ...]:
        """Where to connect to, in the resolver's order. SinkRefused when one of them may not be
        reached. `public`: requests that a tenant aims."""
        found = resolve(host, port)
        for address in found:
            if (reason := self._objection(address, public)) is not None:
                raise SinkRefused(f"{host!r} leads to {address}, {reason}")
        return tuple(map(str, found))

    def reach(self, host: str, port: int, *, public: bool = False, seconds: float = 5) -> str:
        """The address to connect to: of several, the first that accepts a connection."""
        found = self.addresses(host, port, public=public)
        for address in found[:-1]:
            try:
                socket.create_connection((address, port), seconds).close()
            except OSError:
                continue
            return address
        return found[-1]

    def _objection(self, address: Address, public: bool) -> str | None:
        if is_forbidden(address):
            return (
                "which tenants may not reach: a cloud keeps its machines' credentials there, "
                "and no server can be there."
            )
        if _within(address, self.refused):
            return "which the operator refuses (REFILL_REFUSED_NETWORKS)."
        if self.allowed:
            if _within(address, self.allowed):
                return None
            return "which is none of the operator's networks (REFILL_ALLOWED_NETWORKS)."
        if public and is_private(address) and not self.allow_private:
            return (
                "which webhooks may not reach: it is not a public address. An operator may set "
                "REFILL_ALLOW_PRIVATE_HOSTS for private ones."
            )
        return None


ANYWHERE = NetworkPolicy()  # but metadata, as ever


def resolve(host: str, port: int) -> tuple[Address, ...]:
    """Every address of the host, in the resolver's order."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as exc:
        raise SinkUnavailable(
            f"The name {host!r} could not be resolved; check it, or the resolver."
        ) from exc
    return tuple(dict.fromkeys(ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))


def is_forbidden(address: Address) -> bool:
    """Never reached, whatever the operator allows."""
    return any(
        each.is_link_local or each.is_multicast or any(each in network for network in _METADATA)
        for each in (address, _plain(address))
    )


def is_private(address: Address) -> bool:
    """This machine, its network, or nowhere at all."""
    if isinstance(address, IPv6Address) and (address in _COMPATIBLE or address in _NAT64_LOCAL):
        return True
    address = _plain(address)
    return not address.is_global or address in _SHARED


def _within(address: Address, networks: str) -> bool:
    """Also when it is written in an IPv6 dress."""
    found = [ip_network(network.strip()) for network in networks.split(",") if network.strip()]
    return any(each in network for network in found for each in (address, _plain(address)))


def _plain(address: Address) -> Address:
    """An IPv4 address in an IPv6 dress is what it is underneath."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped:
            return address.ipv4_mapped
        if address.sixtofour:
            return address.sixtofour
        if any(address in network for network in (_NAT64, _NAT64_LOCAL, _COMPATIBLE)):
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address
