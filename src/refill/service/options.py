"""A connector's options: read from what was sent, kept in clear for the store, shown masked."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import SecretStr, ValidationError

from refill.connectors.kit.contract import Connector, Options
from refill.domain.errors import Invalid

MASK = "**********"  # as pydantic prints a SecretStr


def parse_options(connector: Connector, fields: Mapping[str, Any], prefix: str = "") -> Options:
    """Invalid, by field, when they are not what the connector takes."""
    try:
        return connector.options_model.model_validate(dict(fields))
    except ValidationError as exc:
        problems: dict[str, list[str]] = {}
        for error in exc.errors(include_url=False, include_input=False):
            name = prefix + (".".join(str(part) for part in error["loc"]) or connector.type)
            problems.setdefault(name, []).append(_sentence(error["type"], error["msg"]))
        summary = "; ".join(f"{name}: {', '.join(found)}" for name, found in problems.items())
        raise Invalid(summary, problems) from exc


def _sentence(kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        return "is not a known key"
    if kind == "missing":
        return "is required"
    message = message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def reveal(options: Options) -> dict[str, Any]:
    """Everything in clear, as the store gets it; it encrypts what it is given."""
    return {name: _clear(value) for name, value in options.model_dump().items()}


def masked(connector: Connector | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """What an answer may show. Without the connector that knows which are secret: nothing."""
    if connector is None:
        return {}
    return connector.options_model.model_validate(dict(options)).shown_masked()


def frozen(connector: Connector, options: Mapping[str, Any]) -> dict[str, Any]:
    """What a backfill keeps: everything but how to reach the system."""
    live = connector.options_model.live
    return {name: value for name, value in options.items() if name not in live}


def changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The old fields with the new ones over them; a mask sent back leaves the secret as it is."""
    return {**old, **_unmasked(old, new)}


def secret_fields(model: type[Options]) -> tuple[str, ...]:
    return tuple(
        name for name, info in model.model_fields.items() if "SecretStr" in str(info.annotation)
    )


def refuse_moved_secrets(
    connector: Connector,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    sent: Mapping[str, Any],
    prefix: str = "",
) -> None:
    """Invalid, by field, where a stored secret would be shown to somebody else: whoever may change
    an address is not thereby told the secret. `sent`: what the request gave in clear stays."""
    model = connector.options_model
    if (
        model.model_validate(dict(old)).where_secrets_go()
        == model.model_validate(dict(new)).where_secrets_go()
    ):
        return
    kept = [
        name
        for name in secret_fields(model)
        if _kept(old.get(name), new.get(name), sent.get(name), _clear(_default(model, name)))
    ]
    refuse_kept(kept, prefix)


def refuse_kept(names: Iterable[str], prefix: str = "") -> None:
    """Invalid where there are any: they were stored for another address."""
    fields = {
        prefix + name: [f"give the {name} again: the stored one was for another address"]
        for name in names
    }
    if fields:
        summary = "; ".join(f"{name}: {said[0]}" for name, said in fields.items())
        raise Invalid(summary, fields)


def _kept(old: Any, new: Any, sent: Any, default: Any) -> bool:
    """Whether the secret, or one inside it, is the stored one and not one that was just given. A
    default is no secret: everybody can read it in the documentation."""
    if not old or old == default:
        return False
    if isinstance(old, Mapping):
        given = sent if isinstance(sent, Mapping) else {}
        now = new if isinstance(new, Mapping) else {}
        return any(_kept(old[name], now.get(name), given.get(name), None) for name in old)
    return bool(new == old and (sent is None or sent == MASK))


def _default(model: type[Options], name: str) -> Any:
    return model.model_fields[name].get_default(call_default_factory=True)


def _unmasked(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The new fields; masks stand for what was there, and for nothing where nothing was."""
    found: dict[str, Any] = {}
    for name, value in new.items():
        if value == MASK:
            if name in old:
                found[name] = old[name]
        elif isinstance(value, Mapping):
            before = old.get(name)
            found[name] = _unmasked(before if isinstance(before, Mapping) else {}, value)
        else:
            found[name] = value
    return found


def _clear(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, Mapping):
        return {name: _clear(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_clear(inner) for inner in value]
    return value
