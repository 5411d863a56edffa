"""The drawing names files and names that exist."""

import ast
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
DRAWING = DOCS / "explanation" / "architecture.md"
LINK = re.compile(r"\[(`?)([^\]`]+)`?\]\(([^)#]+)\)")


def links() -> list[tuple[str, str, Path]]:
    """(name or "", words, file) of every link."""
    found = LINK.findall(DRAWING.read_text())
    return [
        (words if quoted else "", words, (DRAWING.parent / target).resolve())
        for quoted, words, target in found
        if "://" not in target
    ]


def names_in(path: Path) -> set[str]:
    """What a module defines: functions, classes, and what is in these, as `Class.method`."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found.add(node.name)
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    found |= {inner.name, f"{node.name}.{inner.name}"}
                if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                    found.add(f"{node.name}.{inner.target.id}")
    return found


@pytest.mark.parametrize("link", links(), ids=lambda link: link[1])
def test_what_the_drawing_names_is_there(link: tuple[str, str, Path]) -> None:
    name, _, path = link
    assert path.exists(), path
    if name:
        assert name in names_in(path)


def test_the_drawing_has_every_room() -> None:
    import refill

    home = Path(refill.__file__).parent
    rooms = {path.name for path in home.iterdir() if (path / "__init__.py").exists()}
    drawn = re.search(r"```\n(.*?)```", DRAWING.read_text(), re.DOTALL)
    assert drawn is not None
    assert rooms <= set(re.findall(r"\w+", drawn[1]))
