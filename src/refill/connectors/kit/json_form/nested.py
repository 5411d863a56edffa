"""Texts that have parts (arrays, composites, hstore) as JSON, by whole columns.

A shape says what the parts are: a word for a leaf (see leaves.py), `{"array": shape, "by": ","}`,
`{"fields": [[name, shape], …]}` or `"hstore"`. The texts are as PostgreSQL prints them: what could
be taken for syntax stands in quotes. So the quotes of the whole column, counted, tell which
characters are syntax; the text is cut there, the parts become JSON as columns of their own, and are
joined again with JSON's syntax between them.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from refill.connectors.kit.json_form.instants import Arrow
from refill.connectors.kit.json_form.leaves import leaf_texts
from refill.connectors.kit.json_form.texts import (
    Style,
    Texts,
    bytes_of,
    escaped,
    to_arrow,
    to_series,
)

Shape = Any  # JSON
_buffer: Any = pa.py_buffer  # its stubs know no arrays of numpy
_QUOTE, _BACKSLASH = ord('"'), ord("\\")
# what stands for one character inside quotes: an array has \" and \\, a composite "" and \\
_ESCAPED_IN_ARRAY, _ESCAPED_IN_COMPOSITE = r"(?s)\\(.)", r'(?s)[\\"](.)'
_HSTORE = {"{": "{", "}": "}", "=": ":", ">": "", ",": ",", " ": ""}


def shaped_texts(array: Arrow, shape: Shape, style: Style) -> Texts:
    """The JSON of a column of texts."""
    array = array.cast(pa.large_string())
    if shape == "hstore":
        whole = to_arrow("{" + to_series(array) + "}")
        return Texts(_translated(whole, _HSTORE, "text", style), False)
    if isinstance(shape, str):
        return leaf_texts(array, shape, style)
    if "fields" in shape:
        return _composite_texts(array, shape["fields"], style)
    return _array_texts(array, shape, style)


def _array_texts(array: Arrow, shape: Shape, style: Style) -> Texts:
    """A lower bound other than 1, `[0:1]={a,b}`, has no place in JSON: such a row stays text."""
    texts = to_series(array)
    bounded = texts.str.starts_with("[").fill_null(False)
    syntax = {"{": "[", "}": "]", shape["by"]: ","}
    if not bounded.any():
        return Texts(_translated(array, syntax, shape["array"], style), False)
    plain = texts.set(bounded, None)
    made = _translated(to_arrow(plain), syntax, shape["array"], style)
    return Texts(made.zip_with(~bounded, escaped(array).json()), False)


def _translated(array: Arrow, syntax: Mapping[str, str], shape: Shape, style: Style) -> pl.Series:
    """The texts with their syntax replaced and each part in its JSON form."""
    array = _without_nulls(array)
    run = bytes_of(array)
    at = np.flatnonzero(_among(run, syntax) & ~_in_quotes(run))
    parts, marks = _cut(run, at)
    joined = pl.DataFrame(
        {
            "part": _part_texts(parts, shape, _ESCAPED_IN_ARRAY, style),
            "mark": marks.replace_strict(syntax, return_dtype=pl.String),
        }
    ).select(pl.concat_str("part", "mark"))
    offsets = np.searchsorted(at, _row_ends(array))
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), to_arrow(joined.to_series()))
    texts = to_series(lists).list.join("")
    return texts.set(texts == "", None)


def _part_texts(parts: pl.Series, shape: Shape, doubled: str, style: Style) -> pl.Series:
    """The JSON of each part; nothing where there is no part, as between `{` and `{`."""
    there = parts != ""
    nulls = parts == "NULL"
    values = _unquoted(parts.set(~there | nulls, None), doubled)
    texts = shaped_texts(to_arrow(values), shape, style).json()
    return texts.set(~there, "")


def _composite_texts(array: Arrow, fields: list[tuple[str, Shape]], style: Style) -> Texts:
    """`(1,"a b",)` as an object. A row that has other fields than the type had when it was looked
    at stays text."""
    bare = _without_nulls(to_arrow(to_series(array).str.slice(1).str.head(-1) + ","))
    run = bytes_of(bare)
    at = np.flatnonzero((run == ord(",")) & ~_in_quotes(run))
    ends = _row_ends(bare)
    counts = np.diff(np.searchsorted(at, ends))
    valid = np.diff(ends) > 0
    other = valid & (counts != max(1, len(fields)))
    if other.any():
        strange = pl.Series(other)
        made = _composite_texts(to_arrow(to_series(array).set(strange, None)), fields, style).json()
        return Texts(made.zip_with(~strange, escaped(array).json()), False)
    if not fields:
        return Texts(to_series(array).replace({"()": "{}"}), False)
    if not valid.any():
        return Texts(pl.Series([None], dtype=pl.String).new_from_index(0, len(array)), False)
    parts, _ = _cut(run, at)
    pieces: list[pl.Expr] = []
    columns: dict[str, pl.Series] = {}
    for index, (name, shape) in enumerate(fields):
        part = parts.gather_every(len(fields), index)
        # nothing at all is NULL here, and an empty text stands in quotes
        values = _unquoted(part.set(part == "", None), _ESCAPED_IN_COMPOSITE)
        columns[str(index)] = shaped_texts(to_arrow(values), shape, style).json()
        head = f"{',' if index else '{'}{json.dumps(name, ensure_ascii=False)}:"
        pieces += [pl.lit(head), pl.col(str(index))]
    made = pl.DataFrame(columns).select(pl.concat_str(*pieces, pl.lit("}"))).to_series()
    places = np.cumsum(valid) - 1
    rows = pl.Series(np.where(valid, places, 0)).set(pl.Series(~valid), None)
    return Texts(made.gather(rows), False)


def _unquoted(parts: pl.Series, doubled: str) -> pl.Series:
    quoted = parts.str.starts_with('"')
    if not quoted.any():
        return parts
    inner = parts.str.slice(1).str.head(-1)
    if inner.str.contains_any(["\\", '"']).any():
        inner = inner.str.replace_all(doubled, "${1}")
    return inner.zip_with(quoted.fill_null(False), parts)


def _among(run: Any, characters: Mapping[str, str]) -> Any:
    table = np.zeros(256, dtype=bool)
    table[[ord(character) for character in characters]] = True
    return table[run]


def _in_quotes(run: Any) -> Any:
    """For each byte whether it stands inside quotes. Every text closes those that it opens, so
    they can be counted through the whole column."""
    quotes = run == _QUOTE
    if not quotes.any():
        return np.zeros(len(run), dtype=bool)
    slashes = np.flatnonzero(run == _BACKSLASH)
    if slashes.size:
        # of a run of backslashes every second one, from the first, escapes what follows it
        fresh = np.diff(slashes, prepend=-2) != 1
        starts = slashes[fresh][np.cumsum(fresh) - 1]
        quotes[slashes[(slashes - starts) % 2 == 0] + 1] = False
    return np.cumsum(quotes, dtype=np.int64) % 2 == 1


def _cut(run: Any, at: Any) -> tuple[pl.Series, pl.Series]:
    """What stands before each of the places, and the character there; the bytes are not copied."""
    offsets = np.empty(2 * len(at) + 1, dtype=np.int64)
    offsets[0], offsets[1::2], offsets[2::2] = 0, at, at + 1
    pieces = pa.LargeStringArray.from_buffers(2 * len(at), _buffer(offsets), _buffer(run))
    series = to_series(pieces)
    return series.gather_every(2), series.gather_every(2, 1)


def _without_nulls(array: Arrow) -> Arrow:
    return array.fill_null("") if array.null_count else array


def _row_ends(array: Arrow) -> Any:
    ends = np.frombuffer(array.buffers()[1], dtype=np.int64)
    part = ends[array.offset : array.offset + len(array) + 1]
    return part - part[0]
