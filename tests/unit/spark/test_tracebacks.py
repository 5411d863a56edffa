"""What is read out of the text that Spark passes on of a Python worker's error."""

import traceback

import pytest

from refill.spark.tracebacks import missing_in


def text_of(program: str) -> str:
    """As Spark shows it: Python's own text inside the JVM's."""
    try:
        exec(program)
    except Exception:
        said = traceback.format_exc()
    return f"Job aborted due to stage failure:\n{said}\n\tat org.apache.spark.Nothing(X.scala:1)"


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import refill_of_nobody.sink", "The Python module 'refill_of_nobody' is not installed"),
        ("import refill.gone", "run pip install refill-backfills"),
        ("from json import no_such_thing", "cannot import name 'no_such_thing'"),
    ],
)
def test_an_import_that_failed_is_found(program: str, words: str) -> None:
    found = missing_in(text_of(program))
    assert found is not None
    assert words in found.message


@pytest.mark.parametrize(
    "program",
    [
        "raise ValueError('ModuleNotFoundError: No module named x')",
        "try:\n  import gone\nexcept ImportError as e:\n  raise KeyError('other') from e",
    ],
)
def test_another_error_is_not_taken_for_one(program: str) -> None:
    assert missing_in(text_of(program)) is None


def test_text_without_a_traceback_says_nothing_of_modules() -> None:
    assert missing_in("ImportError: said the JVM") is None
