"""docs/reference/types.md is made from the table of types:

python -m refill.connectors.postgres.reference > docs/reference/types.md
"""

import sys
from collections.abc import Iterable

from refill.connectors.postgres.types import DECIMAL, ENUM, FORMS, TEXT, TypeForm

_HEAD = """\
# PostgreSQL types

How a value of each type is read, and what it is in each kind of destination. This page is made
from the code (`python -m refill.connectors.postgres.reference`) and a test holds it to that.

- **plain**: the Arrow type holds every value of the PostgreSQL type exactly.
- **json**: a string that is JSON text; messages and JSON lines embed it as it is.
- **text**: a string in PostgreSQL's own output form, which PostgreSQL reads back exactly.

Text is printed with `DateStyle` ISO, `TimeZone` UTC, `IntervalStyle` postgres, `bytea_output` hex,
`lc_monetary` C and `extra_float_digits` 1, whatever the server, the database or the role have set.
A domain is read as the type under it. From PostgreSQL to PostgreSQL every value is identical,
whichever form it takes in between.

Each field of a batch, and of a Parquet file, carries the type as PostgreSQL prints it in its
metadata (`pg_type`) and the form (`form`).
"""

_SPECIAL = (
    (
        "`infinity`, `-infinity` of a date",
        "the largest and the smallest int32 of date32",
        '`"infinity"`, `"-infinity"`',
    ),
    (
        "`infinity`, `-infinity` of a timestamp",
        "the largest and the smallest int64 of timestamp[us]",
        '`"infinity"`, `"-infinity"`',
    ),
    (
        "`NaN` of a numeric(p,s)",
        "10^(p-s), one above the largest number of the column; the field's metadata `nan`",
        '`"NaN"`',
    ),
    (
        "`NaN`, `Infinity`, `-Infinity` of a numeric without precision",
        "the text",
        "the text as a string",
    ),
    (
        "`NaN`, `Infinity`, `-Infinity` of a real or a double",
        "the float",
        "the text as a string",
    ),
    (
        "years before 1 and after 9999",
        "the number of days or microseconds",
        'as PostgreSQL prints them: `"0044-03-15 BC"`, `"12024-01-01"`',
    ),
)
_TAIL = """\

From PostgreSQL to PostgreSQL each of these is itself again.

A timestamp after 294247-01-10T04:00:54.775806 has no place in Arrow's 64 bits of microseconds, and
PostgreSQL goes on to the end of 294276. In a batch, the first of them is -2^62 and the others count
on from there, long before PostgreSQL's first day; PostgreSQL and messages get the timestamp itself.
A Parquet file does not take the row: it is a reject with its key. Spark SQL fails the slice.

## Parts

Columns whose text has parts keep it in Arrow, Parquet and JSON lines. In messages they are JSON:

| PostgreSQL | in a message |
|---|---|
| arrays | arrays, of any depth; each element in the form of its type, NULL as `null` |
| an array whose lower bound is not 1 | its text, `"[0:1]={1,2}"`: JSON has no place for the bound |
| composites | objects, each field in the form of its type |
| hstore | an object of strings and nulls |
| vector (pgvector) | an array of numbers |
| ranges and multiranges, also in arrays | as they print: `"[1,5)"` |
| domains over any of them | as what is under them |

`numeric_format: "number"` on a sink writes numeric as numbers, in arrays and composites too. JSON
lines always have numbers. What the parts are is looked up with the table (`shape` in the field's
metadata): a composite that gets another field during a backfill is sent as text, and so is a column
whose table was looked up by a version of refill that did not know of parts.
"""


def render() -> str:
    """The page."""
    lines = [
        _HEAD,
        "| PostgreSQL | form | Arrow, Parquet | JSON | read as | |",
        "|---|---|---|---|---|---|",
        *_rows((*FORMS[:13], DECIMAL, *FORMS[13:], ENUM, TEXT)),
        "",
        "## Values that have no number or date of their own",
        "",
        "| value | Arrow, Parquet | JSON |",
        "|---|---|---|",
        *(f"| {' | '.join(value)} |" for value in _SPECIAL),
        _TAIL,
    ]
    return "\n".join(lines)


def _rows(forms: Iterable[TypeForm]) -> list[str]:
    return [
        f"| {form.types} | {form.form} | {_arrow(form)} | {form.json} | "
        f"`{form.select.format('column')}` | {form.note} |"
        for form in forms
    ]


def _arrow(form: TypeForm) -> str:
    return "decimal128(p + 1, s)" if form.arrow == "decimal128" else form.arrow


if __name__ == "__main__":
    sys.stdout.write(render())
