"""How each PostgreSQL type is read, as data: what is selected, what it is in Arrow, in which form.

The cheapest exact way per type. A type that is not listed is read as PostgreSQL's own text.
"""

from dataclasses import dataclass, replace

from refill.connectors.kit.fields import Form
from refill.connectors.postgres.native import NativeType
from refill.domain.table import Column

NUMERIC = 1700
DECIMAL_DIGITS = 38  # what decimal128, Parquet readers and Spark can hold


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeForm:
    """One way of reading. `select` takes the quoted column; `arrow` is what the batches hold,
    `wire` what the driver delivers before `convert` (a function of values.py) makes it that."""

    types: str  # as people know them
    select: str = "{}"
    wire: str
    arrow: str
    form: Form = Form.PLAIN  # see docs/reference/types.md
    convert: str = "take"
    oids: tuple[int, ...] = ()
    json: str  # what a message holds
    note: str = ""
    precision: int = 0
    scale: int = 0
    digits: int = 0  # of a numeric(p,s): p


_TEXT = TypeForm(
    types="everything else",
    select="{}::text",
    wire="string",
    arrow="string",
    form=Form.TEXT,
    json="string",
    note="PostgreSQL's text output: arrays of any depth and lower bound, ranges, composites, …",
)

FORMS: tuple[TypeForm, ...] = (
    TypeForm(types="boolean", oids=(16,), wire="bool", arrow="bool", json="true, false"),
    TypeForm(types="smallint", oids=(21,), wire="int16", arrow="int16", json="number"),
    TypeForm(types="integer", oids=(23,), wire="int32", arrow="int32", json="number"),
    TypeForm(types="bigint", oids=(20,), wire="int64", arrow="int64", json="number"),
    TypeForm(
        types="real",
        oids=(700,),
        wire="float",
        arrow="float",
        json='number; "NaN", "Infinity", "-Infinity"',
    ),
    TypeForm(
        types="double precision",
        oids=(701,),
        wire="double",
        arrow="double",
        json='number; "NaN", "Infinity", "-Infinity"',
    ),
    TypeForm(
        types="text, character varying",
        oids=(25, 1043),
        wire="string",
        arrow="string",
        json="string",
    ),
    TypeForm(
        types="character(n)",
        oids=(1042,),
        wire="string",
        arrow="string",
        json="string",
        note="with its trailing blanks, as it prints",
    ),
    TypeForm(types="name", oids=(19,), wire="string", arrow="string", json="string"),
    TypeForm(
        types="bytea",
        oids=(17,),
        wire="binary",
        arrow="binary",
        json='string, hex: "\\\\x00ff"',
    ),
    TypeForm(
        types="date",
        oids=(1082,),
        wire="date32[day]",
        arrow="date32[day]",
        convert="date",
        json='"2024-01-31"; "infinity", "-infinity"',
        note="±infinity are the largest and the smallest int32",
    ),
    TypeForm(
        types="timestamp without time zone",
        oids=(1114,),
        wire="timestamp[us]",
        arrow="timestamp[us]",
        convert="timestamp",
        json='"2024-01-31T12:00:00.000000"; "infinity", "-infinity"',
        note="±infinity are the largest and the smallest int64; later than "
        "294247-01-10T04:00:54.775806: see below",
    ),
    TypeForm(
        types="timestamp with time zone",
        oids=(1184,),
        wire="timestamp[us, tz=UTC]",
        arrow="timestamp[us, tz=UTC]",
        convert="timestamp",
        json='"2024-01-31T12:00:00.000000Z"; "infinity", "-infinity"',
        note="as timestamp without time zone",
    ),
    TypeForm(
        types="numeric",
        oids=(NUMERIC,),
        select="{}::text",
        wire="string",
        arrow="string",
        form=Form.TEXT,
        json='string, every digit; "NaN", "Infinity", "-Infinity"',
        note="without a precision, or with one that decimal128 cannot hold",
    ),
    TypeForm(
        types="uuid",
        oids=(2950,),
        wire="fixed_size_binary[16]",
        arrow="string",
        form=Form.TEXT,
        convert="uuid_text",
        json="string",
        note="16 bytes on the wire, made text in the task",
    ),
    TypeForm(
        types="json, jsonb",
        oids=(114, 3802),
        wire="string",
        arrow="string",
        form=Form.JSON,
        json="embedded as it is",
    ),
    TypeForm(
        types="oid",
        oids=(26,),
        select="{}::int8",
        wire="int64",
        arrow="int64",
        json="number",
        note="unsigned 32 bits, so a bigint",
    ),
    replace(
        _TEXT,
        types="inet",
        oids=(869,),
        select="textin(inet_out({}))",
        note="::text would add a mask that it does not print",
    ),
    replace(
        _TEXT,
        types='"char"',
        oids=(18,),
        select="textin(charout({}))",
        note="a byte above 127 as PostgreSQL prints it",
    ),
    replace(_TEXT, types="xml", oids=(142,), select="textin(xml_out({}))", note="as it prints"),
    replace(
        _TEXT,
        types="money",
        oids=(790,),
        note="in the locale C, two decimals, whatever lc_monetary says: -$1,234.50",
    ),
    replace(
        _TEXT,
        types="time, time with time zone",
        oids=(1083, 1266),
        note="24:00:00 has no exact Arrow form",
    ),
    replace(
        _TEXT,
        types="interval",
        oids=(1186,),
        json='{"months": 14, "days": 3, "microseconds": 0}; "infinity", "-infinity"',
        note="IntervalStyle postgres",
    ),
    replace(_TEXT, types="bit, bit varying", oids=(1560, 1562), note="010…"),
    replace(
        _TEXT,
        types="cidr, macaddr, macaddr8, pg_lsn, tsvector, tsquery, point, line, lseg, box, path, "
        "polygon, circle, tid, xid, xid8, cid, jsonpath, reg…, int2vector, oidvector",
        oids=(
            *(650, 829, 774, 3220, 3614, 3615, 600, 628, 601, 603, 602, 604, 718, 27, 28, 5069),
            *(29, 4072, 24, 2202, 2205, 2206, 3734, 3769, 4089, 4096, 4191, 22, 30),
        ),
        note="",
    ),
)
DECIMAL = TypeForm(
    types="numeric(p,s) where max(p + 1, s) ≤ 38",
    # the driver's own way from numeric to text costs it more than the server's cast
    select="{}::text",
    wire="string",
    arrow="decimal128",
    convert="decimal",
    json='string, every digit; "NaN"',
    note="decimal128(p + 1, s): one digit more than the column, so that NaN has a place of its "
    "own, 10^(p-s), which no number of the column can be; the field's metadata `nan` names it",
)
ENUM = TypeForm(
    types="enums, citext",
    wire="binary",
    arrow="string",
    form=Form.TEXT,
    convert="bytes_text",
    json="string",
    note="their bytes on the wire are their text",
)
TEXT = replace(_TEXT, json="string; arrays, composites, hstore, vector: see below")

_BY_OID = {oid: form for form in FORMS for oid in form.oids}


def form_of(column: Column) -> TypeForm:
    """How a column is read. A domain is read as what is under it."""
    native = NativeType.of(column)
    if native.kind == "e" or (native.kind == "b" and native.extension == "citext"):
        return ENUM if native.element_oid is None else TEXT
    if native.underneath == NUMERIC:
        return _numeric(native)
    return _BY_OID.get(native.underneath, TEXT)


def nan_value(form: TypeForm) -> str:
    """What stands for NaN in a decimal column: one above the largest number it can hold."""
    digits = "1" + "0" * form.digits
    if form.scale == 0:
        return digits
    whole, fraction = digits.zfill(form.scale + 1)[: -form.scale], digits[-form.scale :]
    return f"{whole}.{fraction.zfill(form.scale)}"


def _numeric(native: NativeType) -> TypeForm:
    plain = _BY_OID[NUMERIC]
    if native.oid != NUMERIC or native.typmod < 4:
        return plain
    # typmod is ((precision << 16) | (scale & 0x7ff)) + 4, the scale signed in eleven bits
    packed = native.typmod - 4
    digits = (packed >> 16) & 0xFFFF
    scale = ((packed & 0x7FF) ^ 1024) - 1024
    if scale < 0:
        digits, scale = digits - scale, 0
    precision = max(digits + 1, scale)
    if precision > DECIMAL_DIGITS:
        return plain
    return replace(DECIMAL, precision=precision, scale=scale, digits=digits)
