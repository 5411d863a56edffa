"""Entries of a file beside what is stored: what differs, without showing a secret."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from refill.service.options import MASK

Form: TypeAlias = Mapping[str, Any]  # an entry as files write it; secrets as Secret
NEW_MASK = f"{MASK} (new)"  # two masks would look like no change at all


@dataclass(frozen=True, slots=True)
class Secret:
    """Compared by its value, and shown only to who may see it."""

    value: Any

    def __repr__(self) -> str:
        return "Secret()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One entry of a file: what it says, and what the service makes of it."""

    name: str
    given: Form
    draft: Any
    once: Any = None  # what is done only when it is made


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    kind: str
    name: str
    action: Literal["create", "update", "delete"]
    old: Form | None = None
    new: Form | None = None
    wish: Wish | None = field(default=None, repr=False)


# of these a file may leave out fields, which then stay as they are
_PARTLY_GIVEN = frozenset({"destination", "fields"})


def merged(old: Any, given: Any, *, partly: bool = True) -> Any:
    """What is stored with what the file says over it; a mask keeps the secret that is there."""
    if isinstance(given, Secret) and given.value == MASK and isinstance(old, Secret):
        return old
    if not isinstance(old, Mapping) or not isinstance(given, Mapping):
        return given
    if partly and given.get("type", old.get("type")) != old.get("type"):
        return given  # another system: nothing of the old one stays
    new = {
        name: merged(old.get(name), value, partly=name in _PARTLY_GIVEN)
        for name, value in given.items()
    }
    return {**old, **new} if partly else new


def rendered(form: Any, *, show: bool = False, beside: Any = None) -> Any:
    """Without secrets, unless they are to be shown; those that differ from `beside` say so."""
    if isinstance(form, Secret):
        if show:
            return form.value
        changed = isinstance(beside, Secret) and beside != form
        return form.value if not form.value else NEW_MASK if changed else MASK
    if isinstance(form, Mapping):
        others = beside if isinstance(beside, Mapping) else {}
        return {
            name: rendered(value, show=show, beside=others.get(name))
            for name, value in form.items()
        }
    if isinstance(form, list | tuple):
        return [rendered(item, show=show) for item in form]
    return form


def hidden(shown: Any, clear: Any) -> Any:
    """What is shown, with the clear value as a secret wherever it is masked."""
    if shown == MASK:
        return Secret(clear)
    if isinstance(shown, Mapping):
        found = clear if isinstance(clear, Mapping) else {}
        return {name: hidden(value, found.get(name)) for name, value in shown.items()}
    return shown
