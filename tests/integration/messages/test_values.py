"""A value of every type as a message has it, beside what the original's documentation says.

`EXACT` are the forms that the original sends too. `KEPT` are those that it sends as null, or cannot
send, and that we send as PostgreSQL prints them.
"""

import json
from typing import Any

import pytest

from refill.connectors.kit.contract import Job
from refill.connectors.kit.envelope import Envelope
from refill.domain.slice import Whole
from tests.integration.messages.orders import make_job, make_ticket
from tests.integration.postgres_source.conftest import Bed

# (type, the value as PostgreSQL reads it, the value in the message)
EXACT: list[tuple[str, str, Any]] = [
    ("boolean", "t", True),
    ("smallint", "-32768", -32768),
    ("integer", "2147483647", 2147483647),
    ("bigint", "9223372036854775807", 9223372036854775807),
    ("real", "0.1", 0.1),
    ("double precision", "1e-7", 1e-7),
    (
        "numeric",
        "12345678901234567890.12345678901234567890",
        "12345678901234567890.12345678901234567890",
    ),
    ("numeric(12,2)", "1.50", "1.50"),
    ("numeric(12,2)", "NaN", "NaN"),
    ("numeric", "Infinity", "Infinity"),
    ("text", 'a"b\\c', 'a"b\\c'),
    ("varchar(5)", "abc", "abc"),
    ("char(3)", "a", "a  "),
    ("bytea", "\\x00ff", "\\x00ff"),
    ("date", "2024-01-31", "2024-01-31"),
    ("time", "12:34:56", "12:34:56"),
    ("timestamp", "2024-01-31 12:00:00", "2024-01-31T12:00:00.000000"),
    ("timestamptz", "2024-01-31 12:00:00.5+00", "2024-01-31T12:00:00.500000Z"),
    ("uuid", "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000001"),
    ("jsonb", '{"a": [1, null]}', {"a": [1, None]}),
    ("json", '{"a":\n1}', {"a": 1}),
    ("a_mood", "sad", "sad"),
    (
        "interval",
        "1 year 2 mons 3 days 04:05:06.789",
        {"months": 14, "days": 3, "microseconds": 14706789000},
    ),
    ("interval", "-1 mon -2 days -00:00:01", {"months": -1, "days": -2, "microseconds": -1000000}),
    ("interval", "0", {"months": 0, "days": 0, "microseconds": 0}),
    ("integer[]", "{1,NULL,3}", [1, None, 3]),
    ("integer[]", "{}", []),
    ("integer[][]", "{{1,2},{3,4}}", [[1, 2], [3, 4]]),
    ("integer[][][]", "{{{1}},{{NULL}}}", [[[1]], [[None]]]),
    (
        "text[]",
        '{a,"b c","x\\"y","\\\\","NULL",NULL,"","{","ž,"}',
        ["a", "b c", 'x"y', "\\", "NULL", None, "", "{", "ž,"],
    ),
    ("boolean[]", "{t,f,NULL}", [True, False, None]),
    ("double precision[]", "{1.5,NaN,-Infinity,1e300}", [1.5, "NaN", "-Infinity", 1e300]),
    ("numeric[]", "{1.10,NaN,NULL}", ["1.10", "NaN", None]),
    (
        "timestamptz[]",
        '{"2024-01-31 12:00:00+00",infinity}',
        ["2024-01-31T12:00:00.000000Z", "infinity"],
    ),
    ("timestamp[]", '{"0044-03-15 12:00:00.25 BC"}', ["0044-03-15T12:00:00.250000 BC"]),
    ("date[]", "{2024-01-31,infinity}", ["2024-01-31", "infinity"]),
    ("jsonb[]", '{"{\\"a\\": [1, \\"x\\"]}",NULL,"null"}', [{"a": [1, "x"]}, None, None]),
    ("uuid[]", "{00000000-0000-4000-8000-000000000001}", ["00000000-0000-4000-8000-000000000001"]),
    ("bytea[]", '{"\\\\x00ff"}', ["\\x00ff"]),
    ("interval[]", '{"1 mon",NULL}', [{"months": 1, "days": 0, "microseconds": 0}, None]),
    ("a_mood[]", '{sad,"it\'s, ok"}', ["sad", "it's, ok"]),
    ("a_pair", '(1,"a,b ""c"" \\\\",)', {"a": 1, "b": 'a,b "c" \\', "c": None}),
    ("a_pair", '(,"","{1.5,NULL}")', {"a": None, "b": "", "c": ["1.5", None]}),
    ("a_pair[]", '{"(1,\\"x y\\",{2})",NULL}', [{"a": 1, "b": "x y", "c": ["2"]}, None]),
    (
        "a_nest",
        '("(1,x,)","{""(2,\\\\""y z\\\\"",)""}")',
        {"pair": {"a": 1, "b": "x", "c": None}, "pairs": [{"a": 2, "b": "y z", "c": None}]},
    ),
    ("a_list", "{1,2}", [1, 2]),
    ("a_list[]", '{"{1,2}","{3}"}', [[1, 2], [3]]),
    ("a_pair_domain", "(1,x,)", {"a": 1, "b": "x", "c": None}),
]
KEPT: list[tuple[str, str, Any]] = [
    ("integer[]", "[0:1]={1,2}", "[0:1]={1,2}"),
    ("int4range", "[1,5)", "[1,5)"),
    ("tstzrange[]", '{"[2024-01-01 00:00:00+00,)"}', ['["2024-01-01 00:00:00+00",)']),
    ("nummultirange", "{[1,2],[3,4]}", "{[1,2],[3,4]}"),
    ("money", "1234.5", "$1,234.50"),
    ("point", "(1,2)", "(1,2)"),
    ("box[]", "{(3,4),(1,2);(7,8),(5,6)}", ["(3,4),(1,2)", "(7,8),(5,6)"]),
    ("int2vector", "1 2", "1 2"),
    ("inet", "10.0.0.1", "10.0.0.1"),
    ("bit(3)", "010", "010"),
    ("tsvector", "'a':1", "'a':1"),
    ("timestamp", "0044-03-15 00:00:00 BC", "0044-03-15T00:00:00.000000 BC"),
    ("date", "-infinity", "-infinity"),
    ("a_empty", "()", {}),
]
CONTRIB: list[tuple[str, str, Any]] = [
    (
        "hstore",
        '"a"=>"1", "b"=>NULL, "q\\"=> ,"=>"x, \\\\"',
        {"a": "1", "b": None, 'q"=> ,': "x, \\"},
    ),
    ("hstore", "", {}),
    ("hstore[]", '{"\\"a\\"=>\\"1\\"",NULL}', [{"a": "1"}, None]),
    ("citext", "ABC", "ABC"),
    ("ltree", "a.b", "a.b"),
]
_TYPES = """
CREATE TYPE a_mood AS ENUM ('sad', 'it''s, ok');
CREATE TYPE a_pair AS (a integer, b text, c numeric[]);
CREATE TYPE a_nest AS (pair a_pair, pairs a_pair[]);
CREATE TYPE a_empty AS ();
CREATE DOMAIN a_list AS integer[];
CREATE DOMAIN a_pair_domain AS a_pair;
"""


def sent(bed: Bed, matrix: list[tuple[str, str, Any]], **spec: Any) -> list[Any]:
    """The values of the record of the one row that has them all, and a row of NULLs beside it."""
    columns = ", ".join(f"c{number} {name}" for number, (name, _, _) in enumerate(matrix))
    bed.sql.execute(f"CREATE TABLE matrix (id integer PRIMARY KEY, {columns})")
    marks = ", ".join(["%s"] * len(matrix))
    bed.sql.execute(f"INSERT INTO matrix VALUES (1, {marks})", [text for _, text, _ in matrix])
    bed.sql.execute("INSERT INTO matrix VALUES (2)")
    bed.sql.execute(
        "INSERT INTO matrix SELECT 3, "
        + ", ".join(f"c{n}" for n in range(len(matrix)))
        + " FROM matrix WHERE id = 1"
    )
    read = bed.reading("matrix")
    job = make_job(table=read.table, columns=(), numeric_format="string", **spec)
    return [message["record"] for message in messages_of(bed, read, job)]


def messages_of(bed: Bed, read: Any, job: Job) -> list[Any]:
    envelope = Envelope(job, make_ticket(), bed.source.schema(read))
    texts = [
        text for batch in bed.source.read(read, Whole()) for text in envelope.wrap(batch).values()
    ]
    return sorted((json.loads(text) for text in texts), key=lambda message: message["record"]["id"])


def compare(found: list[dict[str, Any]], matrix: list[tuple[str, str, Any]]) -> None:
    whole, empty, again = found
    expected = {f"c{number}": value for number, (_, _, value) in enumerate(matrix)}
    assert whole == {"id": 1, **expected}
    assert again == {"id": 3, **expected}
    assert empty == {"id": 2, **dict.fromkeys(expected)}


def test_a_message_has_every_type_in_the_form_that_is_documented(bed: Bed) -> None:
    bed.sql.execute(_TYPES)
    compare(sent(bed, EXACT + KEPT), EXACT + KEPT)


@pytest.mark.usefixtures("with_contrib")
def test_the_types_of_extensions_have_their_forms_too(bed: Bed) -> None:
    for extension in ("hstore", "citext", "ltree"):
        bed.sql.execute(f"CREATE EXTENSION {extension}")
    compare(sent(bed, CONTRIB), CONTRIB)
