"""Random values of every PostgreSQL type, as SQL expressions that PostgreSQL itself evaluates."""

import json

from hypothesis import strategies as st

Exprs = st.SearchStrategy[str]


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def literal(strategy: st.SearchStrategy[str], kind: str) -> Exprs:
    return strategy.map(lambda text: f"{quoted(text)}::{kind}")


def integers(low: int, high: int, kind: str) -> Exprs:
    edges = st.sampled_from([low, high, 0, -1, 1])
    return st.one_of(edges, st.integers(low, high)).map(lambda n: f"'{n}'::{kind}")


# every character but NUL and the surrogates, which PostgreSQL's UTF-8 cannot hold
characters = st.characters(exclude_characters="\x00", exclude_categories=("Cs",))
texts = st.text(characters, max_size=30)
words = st.text(st.characters(categories=("L", "N"), max_codepoint=0x2FFF), min_size=1, max_size=8)
specials = st.sampled_from(["NaN", "Infinity", "-Infinity"])
digits = st.from_regex(r"-?[0-9]{1,40}(\.[0-9]{1,30})?", fullmatch=True)


def decimals(precision: int, scale: int) -> st.SearchStrategy[str]:
    limit = 10**precision - 1
    numbers = st.integers(-limit, limit)
    return numbers.map(lambda n: f"{n}e-{scale}")


def rows_of(values: Exprs, kind: str) -> Exprs:
    return st.lists(st.one_of(values, st.just("null")), max_size=4).map(
        lambda parts: f"array[{', '.join(parts)}]::{kind}"
    )


json_values = st.recursive(
    st.one_of(
        st.none().map(lambda _: "null"),
        st.booleans().map(lambda flag: "true" if flag else "false"),
        st.integers(-(10**30), 10**30).map(str),
        st.from_regex(r"-?[1-9][0-9]{0,20}\.[0-9]{1,20}", fullmatch=True),
        texts.map(lambda text: json.dumps(text, ensure_ascii=False)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
        st.dictionaries(words, inner, max_size=3).map(
            lambda parts: "{" + ", ".join(f'"{k}": {v}' for k, v in parts.items()) + "}"
        ),
    ),
    max_leaves=6,
)

dates = st.one_of(
    st.sampled_from(["infinity", "-infinity", "4713-01-01 BC", "5874897-12-31", "0001-01-01"]).map(
        lambda text: f"'{text}'::date"
    ),
    st.integers(-2_451_507, 2_145_031_948).map(lambda n: f"(date '2000-01-01' + {n})"),
    st.integers(-20_000, 20_000).map(lambda n: f"(date '2000-01-01' + {n})"),
)


def instants(kind: str) -> Exprs:
    """Up to the year 294246: beyond it an instant has no Arrow form, and the slice says so."""
    return st.one_of(
        st.sampled_from(
            [
                *("infinity", "-infinity", "4713-01-01 00:00:00 BC", "0001-01-01 00:00:00"),
                *("294246-12-31 23:59:59.999999", "9999-12-31 23:59:59.999999"),
                "2000-02-29 12:00:00.5",
            ]
        ).map(lambda text: f"'{text}'::{kind}"),
        st.integers(-(2 * 10**17), 9 * 10**18).map(
            lambda n: (
                f"('2000-01-01'::{kind} + interval '{n // 1000000} seconds "
                f"{n % 1000000} microseconds')"
            )
        ),
        st.integers(-(10**15), 10**15).map(
            lambda n: f"('2000-01-01'::{kind} + interval '{n} microseconds')"
        ),
    )


clock = st.integers(0, 86_399_999_999).map(
    lambda n: (
        f"{n // 3600000000:02}:{n // 60000000 % 60:02}:{n // 1000000 % 60:02}.{n % 1000000:06}"
    )
)
intervals = st.tuples(
    st.integers(-1000, 1000), st.integers(-1000, 1000), st.integers(-(10**12), 10**12)
).map(lambda t: f"'{t[0]} months {t[1]} days {t[2]} microseconds'::interval")
addresses = st.ip_addresses(v=4).map(str)

PLAIN: dict[str, Exprs] = {
    "boolean": st.sampled_from(["true", "false"]),
    "smallint": integers(-(2**15), 2**15 - 1, "int2"),
    "integer": integers(-(2**31), 2**31 - 1, "int4"),
    "bigint": integers(-(2**63), 2**63 - 1, "int8"),
    "real": st.one_of(specials, st.floats(width=32, allow_nan=False).map(repr)).map(
        lambda text: f"'{text}'::float4"
    ),
    "double precision": st.one_of(specials, st.floats(allow_nan=False).map(repr)).map(
        lambda text: f"'{text}'::float8"
    ),
    "numeric": literal(st.one_of(specials, digits), "numeric"),
    "numeric(12,2)": literal(st.one_of(st.just("NaN"), decimals(12, 2)), "numeric(12,2)"),
    "numeric(37,10)": literal(decimals(37, 10), "numeric(37,10)"),
    "numeric(60,30)": literal(decimals(60, 30), "numeric(60,30)"),
    "numeric(3,5)": literal(decimals(3, 5), "numeric(3,5)"),
    "text": literal(texts, "text"),
    "varchar(40)": literal(texts, "varchar(40)"),
    "char(8)": literal(words, "char(8)"),
    "name": literal(words, "name"),
    '"char"': literal(st.sampled_from(["a", "Z", "~", ""]), '"char"'),
    "bytea": st.binary(max_size=20).map(lambda data: f"'\\x{data.hex()}'::bytea"),
    "date": dates,
    "timestamp": instants("timestamp"),
    "timestamptz": instants("timestamptz"),
    "time": literal(st.one_of(clock, st.just("24:00:00")), "time"),
    "timetz": literal(
        st.tuples(clock, st.sampled_from(["+00", "-08", "+05:30"])).map("".join), "timetz"
    ),
    "interval": intervals,
    "uuid": st.uuids().map(lambda value: f"'{value}'::uuid"),
    "json": literal(json_values, "json"),
    "jsonb": literal(json_values, "jsonb"),
    "money": st.integers(-(10**15), 10**15).map(lambda n: f"('{n}'::numeric / 100)::money"),
    "inet": literal(st.one_of(addresses, addresses.map(lambda a: a + "/24")), "inet"),
    "cidr": literal(addresses.map(lambda a: a + "/32"), "cidr"),
    "macaddr": literal(st.from_regex(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", fullmatch=True), "macaddr"),
    "bit(8)": literal(st.from_regex(r"[01]{8}", fullmatch=True), "bit(8)"),
    "bit varying": literal(st.from_regex(r"[01]{0,20}", fullmatch=True), "bit varying"),
    "xml": literal(words.map(lambda word: f"<a>{word}</a>"), "xml"),
    "tsvector": literal(words, "text").map(lambda e: f"to_tsvector('simple', {e})"),
    "point": st.tuples(st.integers(-99, 99), st.integers(-99, 99)).map(
        lambda p: f"point({p[0]}, {p[1]})"
    ),
    "oid": integers(0, 2**32 - 1, "oid"),
    "pg_lsn": st.integers(0, 2**60).map(lambda n: f"'{n >> 32:X}/{n & 0xFFFFFFFF:X}'::pg_lsn"),
    "int4range": st.tuples(st.integers(-100, 0), st.integers(1, 100)).map(
        lambda p: f"int4range({p[0]}, {p[1]})"
    ),
    "nummultirange": st.integers(0, 9).map(lambda n: f"'{{[{n},{n + 1}),[50,60]}}'::nummultirange"),
    "daterange": st.just("daterange(null, '2024-01-01')"),
    "integer[]": rows_of(integers(-(2**31), 2**31 - 1, "int4"), "int4[]"),
    "text[]": rows_of(literal(texts, "text"), "text[]"),
    "numeric[]": rows_of(literal(digits, "numeric"), "numeric[]"),
    "integer[][]": st.just("'[-1:0][5:6]={{1,2},{3,null}}'::int4[]"),
    "timestamptz[]": rows_of(instants("timestamptz"), "timestamptz[]"),
    "mood": st.sampled_from(["'sad'::mood", "'so so'::mood", "'happy'::mood"]),
    "mood[]": rows_of(st.sampled_from(["'sad'::mood", "'happy'::mood"]), "mood[]"),
    "pair": st.tuples(st.integers(-9, 9), texts).map(
        lambda p: f"row({p[0]}, {quoted(p[1])})::pair"
    ),
    "positive": st.integers(1, 10**9).map(lambda n: f"{n}::positive"),
}
CONTRIB: dict[str, Exprs] = {
    "hstore": st.tuples(words, texts).map(lambda p: f"hstore({quoted(p[0])}, {quoted(p[1])})"),
    "ltree": literal(
        st.lists(st.from_regex(r"[a-z]{1,5}", fullmatch=True), min_size=1, max_size=3).map(
            ".".join
        ),
        "ltree",
    ),
    "citext": literal(texts, "citext"),
    "citext[]": rows_of(literal(words, "citext"), "citext[]"),
}
SETUP = """
create type mood as enum ('sad', 'so so', 'happy');
create type pair as (number int, label text);
create domain positive as bigint check (value > 0);
"""
SETUP_CONTRIB = "create extension hstore; create extension ltree; create extension citext;"

# what a table can be keyed by
KEYS: dict[str, Exprs] = {
    name: PLAIN[name]
    for name in (
        *("bigint", "integer", "smallint", "uuid", "text", "numeric(12,2)", "date", "timestamptz"),
        *("timestamp", "bytea", "mood", "char(8)", "double precision", "numeric", "inet"),
        *("interval", "boolean", "positive", "time", "bit varying", "name"),
    )
}
