"""A module that cannot be imported: no waiting brings it, so it is said and not tried again."""

from refill.connectors.kit.drivers import install_command
from refill.connectors.kit.registry import requirement_of
from refill.domain.errors import Misconfigured


def missing_module(exc: BaseException) -> Misconfigured | None:
    """The sentence for an import that failed, also where a driver's error was raised from it."""
    cause: BaseException | None = exc
    while cause is not None and not isinstance(cause, ImportError):
        cause = cause.__cause__
    return None if cause is None else explain(cause)


def explain(exc: ImportError) -> Misconfigured:
    if exc.name is None:
        return Misconfigured(
            f"A Python module cannot be imported ({_line(exc)}); mend the installation of the "
            "worker and of every machine of its Spark, then retry."
        )
    what = "is not installed" if isinstance(exc, ModuleNotFoundError) else "cannot be imported"
    said = "" if isinstance(exc, ModuleNotFoundError) else f" ({_line(exc)})"
    return Misconfigured(
        f"The Python module {exc.name!r} {what}{said} where the work ran; on the worker and on "
        f"every machine of its Spark {_what_to_do(exc.name)}, then retry."
    )


def _what_to_do(module: str) -> str:
    try:
        required = requirement_of(module)
    except Misconfigured:  # another connector is broken: this one's sentence still has to come
        required = None
    if required is None:
        return "install the package that brings it"
    return f"run {install_command(required)}"


def _line(exc: ImportError) -> str:
    return (str(exc).splitlines() or [""])[0][:200]
