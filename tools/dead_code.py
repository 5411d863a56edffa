"""What nothing in src reads: names, found by vulture, and modules that nobody imports.

`python tools/dead_code.py`, a part of `make check`. What something else reads, which neither can
see, is allowed below with the reason; an allowance that excuses nothing is an error, too.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import grimp
from vulture import Vulture

from refill.cli.root import COMMANDS, GROUPS
from refill.connectors import BUILT_IN

SOURCE = Path(__file__).parent.parent / "src" / "refill"
# whoever wrote the decorator calls what is below it
DECORATORS = [
    "@router.*",
    "@app.command",
    "@with_settings",
    "@field_validator",
    "@model_validator",
    "@sa.event.listens_for",
]


# imported by name: a command, a connector
LOADED = {
    *(f"refill.cli.{name}" for name in (*COMMANDS, *GROUPS)),
    *(place.partition(":")[0] for place in BUILT_IN.values()),
}


@dataclass(frozen=True)
class Found:
    path: str  # below src/refill
    kind: str  # variable, function, class, …, module
    name: str
    line: int = 1

    def __str__(self) -> str:
        return f"src/refill/{self.path}:{self.line}: nothing reads the {self.kind} {self.name}"


@dataclass(frozen=True)
class Allowed:
    """Patterns of what is not dead, though it looks so."""

    path: str
    kind: str
    name: str
    why: str

    def covers(self, found: Found) -> bool:
        return (
            fnmatch(found.path, self.path)
            and fnmatch(found.kind, self.kind)
            and fnmatch(found.name, self.name)
        )


ALLOWED = [
    Allowed("*", "variable", "model_config", "pydantic's own word"),
    Allowed("api/config/*", "variable", "*", "fields of forms: pydantic fills and shows them"),
    Allowed("api/dialects/*", "variable", "*", "fields of forms: pydantic fills and shows them"),
    Allowed("api/dialects/*", "method", "model_parametrized_name", "pydantic calls it"),
    Allowed("api/document.py", "variable", "validation_errors", "a field of a form"),
    Allowed("cli/__main__.py", "module", "*", "python -m refill.cli"),
    Allowed("cli/demo/__init__.py", "function", "demo", "a command, found by its name"),
    Allowed("cli/options.py", "attribute", "__*__", "Typer reads them"),
    Allowed("connectors/*", "variable", "CONNECTOR", "found by its entry point"),
    Allowed("connectors/*/reference.py", "module", "*", "python -m, for pages of the docs"),
    Allowed("connectors/kit/contract.py", "import", "builtins", "in an annotation, as text"),
    Allowed("connectors/kit/contract.py", "property", "transfer_spec", "for others' destinations"),
    Allowed("console/__init__.py", "module", "*", "a room that is still empty"),
    Allowed("domain/backfill.py", "variable", "OLDEST_FIRST", "a word of the API"),
    Allowed("domain/notice.py", "variable", "WEBHOOK", "a word of the API"),
    Allowed("store/records.py", "variable", "lag_seconds", "read by name, for /metrics"),
    Allowed("domain/backfill.py", "variable", "slices_*", "summed by name, for every state"),
    Allowed("packs/in_process.py", "class", "InProcessEngine", "docs/decisions/0008"),
    Allowed("packs/in_process.py", "module", "*", "docs/decisions/0008"),
    Allowed("spark/session.py", "attribute", "_jvm", "PySpark's, taken away from it"),
    Allowed("store/backend.py", "attribute", "isolation_level", "sqlite3 reads it"),
    Allowed("store/migrations/*", "*", "*", "Alembic runs them"),
]


def find_names() -> Iterator[Found]:
    vulture = Vulture(ignore_decorators=DECORATORS)
    vulture.scavenge([str(SOURCE)])
    for item in vulture.get_unused_code(min_confidence=60):
        path = Path(item.filename).resolve().relative_to(SOURCE)
        yield Found(str(path), item.typ, item.name, item.first_lineno)


def find_modules() -> Iterator[Found]:
    graph = grimp.build_graph("refill", cache_dir=None)
    for module in sorted(graph.modules - LOADED):
        if graph.find_modules_that_directly_import(module) or graph.find_children(module):
            continue
        path = module.removeprefix("refill.").replace(".", "/")
        path += "/__init__.py" if (SOURCE / path).is_dir() else ".py"
        yield Found(path, "module", module)


def main() -> int:
    found = [*find_names(), *find_modules()]
    dead = [each for each in found if not any(allowed.covers(each) for allowed in ALLOWED)]
    idle = [allowed for allowed in ALLOWED if not any(allowed.covers(each) for each in found)]
    for each in dead:
        sys.stderr.write(f"{each}\n")
    for allowed in idle:
        sys.stderr.write(f"tools/dead_code.py: nothing needs the allowance {allowed}\n")
    return 1 if dead or idle else 0


if __name__ == "__main__":
    sys.exit(main())
