"""Texts with parts, as PostgreSQL prints them, become JSON that holds the same parts."""

import json
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from refill.connectors.kit.fields import FieldNote, Form
from refill.connectors.kit.json_form import json_lines, record_texts
from refill.domain.table import Family

quickly = settings(deadline=None, max_examples=100)
# PostgreSQL has no NUL in its texts
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
TRICKY = st.text('{}(),"\\ nulNUL;=>[]:', max_size=8)
LEAF = st.none() | ANY_TEXT | TRICKY


def array_of(shape: Any, by: str = ",") -> dict[str, Any]:
    return {"array": shape, "by": by}


def batch_of(values: list[str | None], shape: Any) -> pa.RecordBatch:
    note = FieldNote(family=Family.OTHER, form=Form.TEXT, shape=json.dumps(shape))
    field = pa.field("v", pa.string(), metadata=note.metadata())
    return pa.record_batch([pa.array(values, pa.string())], schema=pa.schema([field]))


def sent(values: list[str | None], shape: Any, **style: Any) -> list[Any]:
    texts = record_texts(batch_of(values, shape), nested=True, **style)
    return [json.loads(text)["v"] for text in texts]


def print_array(value: Any) -> str:
    """As array_out does."""
    if isinstance(value, list):
        return "{" + ",".join(map(print_array, value)) + "}"
    if value is None:
        return "NULL"
    if value == "" or value.upper() == "NULL" or any(c in '{}",\\ \t\n\r\v\f' for c in value):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value)


def print_composite(values: list[str | None]) -> str:
    """As record_out does."""
    return "(" + ",".join(map(_field, values)) + ")"


def _field(value: str | None) -> str:
    if value is None:
        return ""
    if value == "" or any(c in '(),"\\ \t\n\r\v\f' for c in value):
        return '"' + value.replace("\\", "\\\\").replace('"', '""') + '"'
    return value


@quickly
@given(st.lists(st.none() | st.lists(LEAF, max_size=5), max_size=6))
def test_arrays_of_any_text_come_back_as_they_were(rows: list[list[str | None] | None]) -> None:
    printed = [None if row is None else print_array(row) for row in rows]
    assert sent(printed, array_of("text")) == rows


@quickly
@given(st.lists(st.lists(st.lists(LEAF, min_size=2, max_size=2), min_size=1, max_size=3)))
def test_arrays_of_several_dimensions_keep_them(rows: list[Any]) -> None:
    assert sent([print_array(row) for row in rows], array_of("text")) == rows


@quickly
@given(st.lists(st.none() | st.tuples(LEAF, st.lists(LEAF, max_size=3), LEAF), max_size=6))
def test_composites_with_arrays_in_them_are_objects(rows: list[Any]) -> None:
    shape = {"fields": [["a", "text"], ['b"', array_of("text")], ["c", "text"]]}
    printed = [
        None if row is None else print_composite([row[0], print_array(row[1]), row[2]])
        for row in rows
    ]
    expected = [
        None if row is None else dict(zip(["a", 'b"', "c"], row, strict=True)) for row in rows
    ]
    assert sent(printed, shape) == expected
    nested = [print_array([text for text in printed if text is not None])]
    assert sent(nested, array_of(shape)) == [[row for row in expected if row is not None]]


@quickly
@given(st.lists(st.dictionaries(ANY_TEXT | TRICKY, LEAF, max_size=4), max_size=5))
def test_hstore_is_an_object(rows: list[dict[str, str | None]]) -> None:
    def quoted(text: str | None) -> str:
        if text is None:
            return "NULL"
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    printed: list[str | None] = [
        ", ".join(f"{quoted(name)}=>{quoted(value)}" for name, value in row.items()) for row in rows
    ]
    assert sent(printed, "hstore") == rows


def test_a_vector_is_a_list_of_numbers() -> None:
    """The extension pgvector is not at hand: these are texts as its output function writes them."""
    values: list[str | None] = ["[1,2.5,-3e-07]", None, "[0]"]
    assert sent(values, "vector") == [[1, 2.5, -3e-07], None, [0]]
    assert sent(['{"[1,2]","[3,4]"}'], array_of("vector")) == [[[1, 2], [3, 4]]]


def test_an_array_that_begins_elsewhere_than_at_1_stays_text() -> None:
    values: list[str | None] = ["{1,2}", "[0:1]={1,2}", None, "[-1:-1][2:3]={{1,2}}"]
    assert sent(values, array_of("integer")) == [
        [1, 2],
        "[0:1]={1,2}",
        None,
        "[-1:-1][2:3]={{1,2}}",
    ]


def test_a_composite_that_got_another_field_meanwhile_stays_text() -> None:
    shape = {"fields": [["a", "integer"]]}
    assert sent(["(1)", "(1,2)", None, "()"], shape) == [{"a": 1}, "(1,2)", None, {"a": None}]


def test_numbers_in_arrays_follow_the_sink() -> None:
    values: list[str | None] = ["{1.10,NaN,NULL}"]
    assert sent(values, array_of("decimal"), numeric_format="string") == [["1.10", "NaN", None]]
    assert sent(values, array_of("decimal")) == [[1.1, "NaN", None]]


def test_times_in_arrays_follow_the_sink() -> None:
    values: list[str | None] = ['{"1970-01-01 00:00:01+00",-infinity,NULL}']
    assert sent(values, array_of("moment")) == [["1970-01-01T00:00:01.000000Z", "-infinity", None]]
    micros = sent(values, array_of("moment"), timestamp_format="unix_microsecond")
    assert micros == [[1_000_000, "-infinity", None]]


def test_files_of_json_lines_keep_the_text() -> None:
    assert json_lines(batch_of(["{1,2}"], array_of("integer"))).to_pybytes() == b'{"v":"{1,2}"}\n'


def test_a_part_of_a_batch_has_its_own_rows() -> None:
    batch = batch_of(["{1}", "{2,3}", None, "{4}"], array_of("integer")).slice(1, 2)
    assert record_texts(batch, nested=True).to_list() == ['{"v":[2,3]}', '{"v":null}']
