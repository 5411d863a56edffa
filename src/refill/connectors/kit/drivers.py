"""The drivers that extras bring: whether a connector's is here, and what to install if not."""

from importlib.util import find_spec

from refill.connectors.kit.contract import Connector
from refill.domain.errors import Misconfigured


def has_driver(connector: Connector) -> bool:
    return connector.driver is None or _is_here(connector.driver)


def require_driver(connector: Connector) -> None:
    """Misconfigured, with what to install, when the connector's driver is not here."""
    if not has_driver(connector):
        raise Misconfigured(
            f"The {connector.type} connector needs the package {connector.driver!r}, which is not "
            f"installed; install it with: {install_command(requirement(connector))}"
        )


def requirement(connector: Connector) -> str:
    """What pip installs to bring the connector with its driver."""
    extra = f"[{connector.extra}]" if connector.extra else ""
    return f"{connector.distribution}{extra}"


def install_command(required: str) -> str:
    # quoted: brackets are patterns to some shells
    return f"pip install '{required}'" if "[" in required else f"pip install {required}"


def _is_here(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of a dotted name the package itself is missing
        return False
