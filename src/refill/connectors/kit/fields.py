"""What a field of a batch carries beside its Arrow type: sources write it, sinks read it.

It travels as the field's metadata, also into Parquet files, and through Spark for columns that pass
unchanged. `<system>_type` is the type as the source prints it ("pg_type"), for whoever is of the
same system; everybody else goes by the family.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from refill.domain.table import Column, Comparison, Family

if TYPE_CHECKING:
    import pyarrow as pa

_FORM, _NAN, _FAMILY, _COMPARISON, _TYPE = "form", "nan", "family", "comparison", "_type"
_SHAPE = "shape"


class Form(StrEnum):
    """How a value stands in its Arrow column."""

    PLAIN = "plain"  # the Arrow type holds it exactly
    JSON = "json"  # a string that is JSON text
    TEXT = "text"  # a string as the source prints it


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldNote:
    """The note on one field."""

    family: Family
    form: Form = Form.PLAIN
    comparison: Comparison = Comparison.FAMILY
    system: str | None = None  # whose `native_type` it is; None: nobody's, a computed column
    native_type: str | None = None
    nan: str | None = None  # what stands for NaN in a decimal column
    # of a text that has parts: what they are, as JSON; see json_form/nested.py
    shape: str | None = None

    @classmethod
    def of(
        cls,
        column: Column,
        system: str,
        form: Form = Form.PLAIN,
        nan: str | None = None,
        shape: Any = None,
    ) -> "FieldNote":
        """The note on a column that a source reads."""
        return cls(
            family=column.family,
            form=form,
            comparison=column.comparison,
            system=system,
            native_type=column.type,
            nan=nan,
            shape=None if shape is None else json.dumps(shape, ensure_ascii=False),
        )

    def type_in(self, system: str) -> str | None:
        """The native type, for a sink of that very system."""
        return self.native_type if self.system == system else None

    def texts(self) -> dict[str, str]:
        """As metadata; `read_note` reads it back."""
        found = {_FORM: self.form.value, _FAMILY: self.family.value}
        if self.comparison is not Comparison.FAMILY:
            found[_COMPARISON] = self.comparison.value
        if self.system is not None and self.native_type is not None:
            found[self.system + _TYPE] = self.native_type
        if self.nan is not None:
            found[_NAN] = self.nan
        if self.shape is not None:
            found[_SHAPE] = self.shape
        return found

    def metadata(self) -> dict[bytes, bytes]:
        return {name.encode(): text.encode() for name, text in self.texts().items()}


def note_of(field: "pa.Field[Any]") -> FieldNote:
    """The note on a field; without one, what its Arrow type says."""
    texts = {name.decode(): text.decode() for name, text in (field.metadata or {}).items()}
    return read_note(texts, field.type)


def read_note(texts: Mapping[str, str], kind: "pa.DataType") -> FieldNote:
    system = next((name.removesuffix(_TYPE) for name in texts if name.endswith(_TYPE)), None)
    return FieldNote(
        family=Family(texts[_FAMILY]) if _FAMILY in texts else family_of(kind),
        form=Form(texts.get(_FORM, Form.PLAIN)),
        comparison=Comparison(texts.get(_COMPARISON, Comparison.FAMILY)),
        system=system,
        native_type=None if system is None else texts[system + _TYPE],
        nan=texts.get(_NAN),
        shape=texts.get(_SHAPE),
    )


def family_of(kind: "pa.DataType") -> Family:
    """Of a column that no source described: the result of a query or of SQL."""
    from pyarrow import types

    for matches, family in (
        (types.is_boolean, Family.BOOLEAN),
        (types.is_integer, Family.INTEGER),
        (types.is_decimal, Family.DECIMAL),
        (types.is_floating, Family.FLOAT),
        (types.is_string, Family.TEXT),
        (types.is_large_string, Family.TEXT),
        (types.is_binary, Family.BYTES),
        (types.is_large_binary, Family.BYTES),
        (types.is_date, Family.DATE),
        (types.is_time, Family.TIME),
    ):
        if matches(kind):
            return family
    if types.is_timestamp(kind):
        return Family.INSTANT if kind.tz else Family.TIMESTAMP
    return Family.OTHER
