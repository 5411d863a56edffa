"""Planning and applying a file: sections in the order in which they need each other."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from refill.domain.access import Caller, Role
from refill.domain.errors import Forbidden, Invalid, NotFound
from refill.service.config.changes import Change, Form, Wish, merged, rendered
from refill.service.config.sections import Section

Shown: TypeAlias = Callable[[str, Any], dict[str, Any]]  # (kind, object) → as an answer shows it


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file, understood. `sections`: by name, only those that the file has."""

    sections: Mapping[str, tuple[Wish, ...]]
    prune: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    changes: tuple[Change, ...]
    actions: tuple[str, ...] = field(default=())


class Config:
    def __init__(self, sections: tuple[Section, ...]) -> None:
        self._sections = sections

    def plan(self, caller: Caller, document: Document, shown: Shown) -> Plan:
        """What applying it would do. What only the source can tell shows when it is applied."""
        self._check(caller, document)
        changes = tuple(self._changes(caller, document, shown))
        actions = tuple(
            f"Start the initial backfill of {each.name}"
            for each in changes
            if each.kind == "sink" and each.action == "create" and each.wish and each.wish.once
        )
        return Plan(changes=changes, actions=actions)

    def apply(self, caller: Caller, document: Document, shown: Shown) -> Plan:
        """Entry by entry: one that is refused is named, and those before it stand."""
        plan = self.plan(caller, document, shown)
        by_kind = {section.kind: section for section in self._sections}
        for change in plan.changes:
            section = by_kind[change.kind]
            try:
                if change.wish is None:
                    section.delete(caller, change.name)
                else:
                    section.put(caller, change.wish, there=change.action == "update")
            except (Invalid, NotFound) as exc:
                fields = getattr(exc, "fields", {})
                place = f"{section.name} {change.name}"
                raise Invalid(f"{place}: {exc.message}", fields, reason=exc.code) from exc
        return plan

    def export(self, caller: Caller, shown: Shown, *, secrets: bool = False) -> dict[str, Any]:
        """Every section that has something, as a file writes it."""
        if secrets and caller.role not in (Role.OWNER, Role.ADMIN):
            raise Forbidden("Secrets are shown to owners and admins only.")
        found: dict[str, Any] = {}
        for section in self._sections:
            if section.exported:
                forms = section.current(caller, shown).values()
                found[section.name] = [rendered(form, show=secrets) for form in forms]
        return {name: forms for name, forms in found.items() if forms}

    def resources(self, caller: Caller, shown: Shown) -> list[dict[str, Any]]:
        return [
            {"resource_type": section.kind, **rendered(form)}
            for section in self._sections
            for form in section.current(caller, shown).values()
        ]

    def _check(self, caller: Caller, document: Document) -> None:
        for section in self._sections:
            wishes = document.sections.get(section.name, ())
            names = [wish.name for wish in wishes]
            for name in {name for name in names if names.count(name) > 1}:
                raise Invalid.of(section.name, f"{name} is there twice")
            for wish in wishes:
                section.check(caller, wish, document.sections)

    def _changes(self, caller: Caller, document: Document, shown: Shown) -> Iterator[Change]:
        gone: list[Change] = []
        for section in self._sections:
            if section.name not in document.sections:
                continue
            current = section.current(caller, shown)
            wishes = document.sections[section.name]
            for wish in wishes:
                yield from _difference(section, wish, current.get(wish.name))
            if document.prune and section.pruned:
                names = {wish.name for wish in wishes}
                gone += [
                    Change(kind=section.kind, name=name, action="delete", old=form)
                    for name, form in current.items()
                    if name not in names
                ]
        yield from reversed(gone)  # what needs others goes before them


def _difference(section: Section, wish: Wish, old: Form | None) -> Iterator[Change]:
    given = section.wished(wish)
    if old is None:
        yield Change(kind=section.kind, name=wish.name, action="create", new=given, wish=wish)
        return
    new = merged(old, given)
    if new != old:
        yield Change(
            kind=section.kind, name=wish.name, action="update", old=old, new=new, wish=wish
        )
