"""How a column is read, decided by what the catalogue froze."""

from decimal import Decimal, localcontext

import pyarrow as pa
import pytest

from refill.connectors.kit.fields import FieldNote, Form, note_of
from refill.connectors.postgres.types import form_of, nan_value
from refill.connectors.postgres.values import field_of
from refill.domain.table import Column, Family
from tests.specs import pg_column


def numeric(digits: int, scale: int) -> Column:
    typmod = ((digits << 16) | (scale & 0x7FF)) + 4
    return pg_column(name="n", type=f"numeric({digits},{scale})", oid=1700, typmod=typmod)


@pytest.mark.parametrize(
    ("digits", "scale", "arrow", "nan"),
    [
        (12, 2, pa.decimal128(13, 2), "10000000000.00"),
        (1, 0, pa.decimal128(2, 0), "10"),
        (3, 3, pa.decimal128(4, 3), "1.000"),
        (3, 5, pa.decimal128(5, 5), "0.01000"),
        (3, -2, pa.decimal128(6, 0), "100000"),
        (37, 0, pa.decimal128(38, 0), "1" + "0" * 37),
        (38, 0, pa.string(), None),
        (1000, 500, pa.string(), None),
    ],
)
def test_a_numeric_that_fits_is_a_decimal_with_a_place_for_nan(
    digits: int, scale: int, arrow: pa.DataType, nan: str | None
) -> None:
    field = field_of(numeric(digits, scale))
    assert field.type == arrow
    assert field.metadata.get(b"nan") == (nan.encode() if nan else None)
    assert field.metadata[b"form"] == (b"plain" if nan else b"text")
    if nan:
        # one more than the largest number that the column can hold, and still a decimal of it
        form = form_of(numeric(digits, scale))
        with localcontext(prec=60):
            largest = Decimal(nan_value(form)) - Decimal(1).scaleb(-form.scale)
        assert len(largest.as_tuple().digits) == form.digits
        assert str(pa.array([Decimal(nan)], arrow)[0].as_py()) == nan


def test_a_domain_is_read_as_what_is_under_it() -> None:
    domain = pg_column(name="d", type="flag", oid=99_999, kind="d", base_oid=16)
    assert field_of(domain).type == pa.bool_()
    assert field_of(domain).metadata[b"pg_type"] == b"flag"


def test_a_type_nobody_listed_is_text() -> None:
    vector = pg_column(name="v", type="vector(3)", oid=77_777, extension="vector")
    assert form_of(vector).select == "{}::text"
    assert note_of(field_of(vector)) == FieldNote(
        family=Family.OTHER, form=Form.TEXT, system="pg", native_type="vector(3)"
    )


def test_an_array_of_enums_or_citext_is_text_and_not_their_bytes() -> None:
    labels = pg_column(name="e", type="mood[]", oid=55_555, element_oid=44_444)
    words = pg_column(name="c", type="citext[]", oid=5, element_oid=4, extension="citext")
    assert form_of(labels).select == form_of(words).select == "{}::text"
