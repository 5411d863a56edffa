"""What is native to PostgreSQL in a column and an extent: nobody else reads it."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from refill.domain.slice import NativeExtent
from refill.domain.table import Column, Comparison, Family

SYSTEM = "pg"  # in a field's note: whose type it is

_FAMILIES = {
    16: Family.BOOLEAN,
    **dict.fromkeys((20, 21, 23, 26), Family.INTEGER),
    1700: Family.DECIMAL,
    **dict.fromkeys((700, 701), Family.FLOAT),
    **dict.fromkeys((19, 25, 1042, 1043), Family.TEXT),
    17: Family.BYTES,
    1082: Family.DATE,
    **dict.fromkeys((1083, 1266), Family.TIME),
    1114: Family.TIMESTAMP,
    1184: Family.INSTANT,
    2950: Family.UUID,
    **dict.fromkeys((114, 3802), Family.JSON),
}
_PADDED = 1042  # character(n)
_XML = 142
_INCOMPARABLE_EXTENSIONS = frozenset({"hstore"})
# json, xml, point, line, lseg, box, path, polygon, circle, refcursor
_UNSORTABLE = frozenset({114, 142, 600, 628, 601, 603, 602, 604, 718, 1790})


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeType:
    """A column's type as pg_attribute and pg_type have it."""

    oid: int
    typmod: int = -1
    collation: str | None = None
    # what the type is underneath, so that a task needs no look at the catalogue:
    # b base, c composite, d domain, e enum, m multirange, p pseudo, r range (pg_type.typtype)
    kind: str = "b"
    base_oid: int | None = None  # of a domain: the type under it, all the way down
    element_oid: int | None = None  # of an array
    extension: str | None = None  # "hstore", "citext", … when an extension brought the type
    # of what prints as text and has parts: what they are; see shapes.py
    shape: Any = None

    @classmethod
    def of(cls, column: Column) -> "NativeType":
        return cls(**column.native)

    def stored(self) -> dict[str, Any]:
        """What `of` reads back; catalogues are large, so what goes without saying is left out."""
        plain = {field.name: field.default for field in fields(self)}
        return {name: value for name, value in asdict(self).items() if value != plain[name]}

    @property
    def underneath(self) -> int:
        """A domain is read, and compared, as what is under it."""
        return self.base_oid or self.oid


def make_column(name: str, type_name: str, native: NativeType, *, nullable: bool = True) -> Column:
    """The column as everybody sees it."""
    return Column(
        name=name,
        type=type_name,
        family=_family(native),
        nullable=nullable,
        comparison=_comparison(native),
        sortable=native.underneath not in _UNSORTABLE,
        native=native.stored(),
    )


def _family(native: NativeType) -> Family:
    if native.element_oid is not None:
        return Family.OTHER
    if native.extension == "citext":
        return Family.TEXT
    return _FAMILIES.get(native.underneath, Family.OTHER)


def _comparison(native: NativeType) -> Comparison:
    if (
        native.element_oid is not None
        or native.underneath == _XML
        or native.extension in _INCOMPARABLE_EXTENSIONS
    ):
        return Comparison.NONE
    if native.extension == "citext":
        return Comparison.SOURCE_ONLY
    return Comparison.UNPADDED if native.underneath == _PADDED else Comparison.FAMILY


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """Pages first_page <= page < end_page of one relation, under an exported snapshot."""

    relation: str  # quoted by us: a partition, or the table
    first_page: int
    end_page: int | None  # None: to the end
    snapshot: str | None  # None: a preview, which nobody reads

    @classmethod
    def of(cls, extent: NativeExtent) -> "Pages":
        return cls(**extent.native)

    def extent(self) -> NativeExtent:
        native: dict[str, Any] = asdict(self)
        return NativeExtent(
            label="pages",
            lower=f"{self.relation} ({self.first_page},0)",
            upper=None if self.end_page is None else f"{self.relation} ({self.end_page},0)",
            # no scan joins another one half-way: see SESSION in connection.py
            same_order=True,
            native=native,
        )
