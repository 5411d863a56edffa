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

A timestamp after 294247-01-10T04:00:54.775806 has no place in Arrow's 64 bits of microseconds: the
slice fails and names the column. Read such a column as text: a transfer's `query` may select
`at::text`.
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
