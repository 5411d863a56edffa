from pathlib import Path

import pytest

from refill.domain.errors import Invalid
from refill.guards.functions import GROUPS
from refill.guards.transform import check_transform

COLUMNS = ("id", "name", "amount", "Payload", "at")


@pytest.mark.parametrize(
    "sql",
    [
        "select * from source",
        "select id, upper(name) as name from source where amount > 10",
        "SELECT id, CASE WHEN amount > 0 THEN 'a' ELSE 'b' END AS sign FROM source",
        "select id, get_json_object(payload, '$.a') as a from source",
        "select id, cast(amount as decimal(20, 2)) as amount from source",
        "select s.id, s.amount * 2 doubled from source s",
        "select id, transform(split(name, ','), x -> upper(x)) as parts from source",
        "select id, name || 'x' as name, at + interval 1 day as next from source",
        "select id, current_date() as d, current_timestamp as t from source",
    ],
)
def test_a_plain_select_over_source_is_allowed(sql: str) -> None:
    check_transform(sql, COLUMNS, row_by_row=True, keep=("id",))


@pytest.mark.parametrize(
    "sql",
    [
        "select name, sum(amount) as total from source group by name order by total desc limit 3",
        "with b as (select * from source where id > 1) select name, count(*) n from b group by 1",
        "select id, row_number() over (partition by name order by at) as n from source",
        "select a.id from source a join source b on a.id = b.id",
        "select distinct name from source union all select name from source",
        "select id, word from source lateral view explode(split(name, ' ')) t as word",
        "select id from source where amount > (select avg(amount) from source)",
        "select a.id from source a join source b using (id)",
        "select id from (select id from source) s where id is not distinct from 3 group by id",
        "select count(*) from (select extract(year from at) y from source) s",
    ],
)
def test_a_transfer_may_look_at_the_whole_date_and_a_sink_may_not(sql: str) -> None:
    check_transform(sql, COLUMNS, row_by_row=False)
    with pytest.raises(Invalid):
        check_transform(sql, COLUMNS, row_by_row=True)


@pytest.mark.parametrize(
    "sql",
    [
        "select * from text.`/etc/passwd`",
        "select * from parquet.`/data/x`",
        "select * from csv.`/x` union all select name from source",
        "select reflect('java.lang.System', 'getenv', 'HOME') from source",
        "select `reflect`('java.lang.System', 'getenv') from source",
        "select java_method('java.lang.System', 'exit', 0) from source",
        "select system.builtin.reflect('a', 'b') from source",
        "insert overwrite directory '/tmp/x' select * from source",
        "insert into t select * from source",
        "create table t as select * from source",
        "set spark.sql.ansi.enabled = false",
        "select * from source; drop table x",
        "select '${env:HOME}' as home from source",
        "select ${spark.app.name} from source",
        "select /*+ broadcast(source) */ * from source",
        "select * from source -- comment",
        "select transform(name) using 'cat' as (x) from source",
        "from source select transform(name) using '/bin/sh' as (x)",
        "with s as (select id, name as `touch x` from source) "
        "from s left semi join s map (id) using 'touch x'",
        "select * from (with s as (select id, name as `touch x` from source) "
        "from s left semi join s map (id) using 'touch x') q",
        "select * from (select id from source) s join source map (id) using 'touch x'",
        "select id from source a join source b using id",
        "from source",
        "from source select id",
        "select id from (from source) s",
        "select id from source union all from source",
        "from source insert overwrite directory '/tmp/x' select *",
        "select id from source insert",
        "select id from source |> where id > 1",
        "select * from range(10)",
        "select * from read_files('/etc')",
        "select input_file_name() from source",
        "select current_user() from source",
        "select current_user from source",
        "select * from other",
        "select * from default.source",
        "select * from values (1), (2)",
        "select 1",
        "show tables",
        "describe source",
        "cache table source",
        "add jar '/x.jar'",
        "with source as (select * from text.`/etc/passwd`) select * from source",
        "select * from source where exists (select 1 from json.`/x`)",
        "select raise_error('x') from source",
        "select java_method ( 'a', 'b' ) from source",
        "explain select * from source",
        "select * from identifier('text.x')",
        "select * from source tablesample (10 percent)",
        "",
        "not sql at all",
        "select from where",
    ],
)
def test_a_way_in_is_refused(sql: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_transform(sql, COLUMNS, row_by_row=False)
    assert caught.value.fields["transform"][0].startswith("The SQL was refused: ")


def test_an_unknown_column_is_named() -> None:
    with pytest.raises(Invalid, match="nope"):
        check_transform("select id, nope from source", COLUMNS, row_by_row=False)


@pytest.mark.parametrize(
    "sql",
    [
        "select name from source",
        "select id + 1 as id from source",
        "select name as id from source",
        "select id as key from source",
        "select * except (id) from source",
    ],
)
def test_a_sink_keeps_its_key(sql: str) -> None:
    with pytest.raises(Invalid, match="key column id"):
        check_transform(sql, COLUMNS, row_by_row=True, keep=("id",))


def test_the_page_names_every_function_that_is_allowed() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/transforms.md").read_text()
    for group, names in GROUPS.items():
        assert f"| {group} | {' '.join(f'`{name}`' for name in names)} |" in page


@pytest.mark.parametrize(
    "sql",
    [
        "select * from hidden where exists (with hidden as (select 1 as a) select * from hidden)",
        "with a as (select * from b), b as (select * from source) select * from a",
        "with a as (with b as (select * from source) select * from b) select * from b",
        "select (with t as (select 1 as x) select x from t) as x from t join source",
    ],
    ids=["defined inside only", "before its definition", "of an inner query", "beside it"],
)
def test_a_name_counts_only_where_sql_finds_its_definition(sql: str) -> None:
    with pytest.raises(Invalid, match="there is no relation"):
        check_transform(sql, [], row_by_row=False)


@pytest.mark.parametrize(
    "sql",
    [
        "with a as (select * from source), b as (select * from a) select b.id from b join a",
        "with a as (select * from source) select * from (select * from a) where id in "
        "(select id from a)",
        "with source as (select id from source) select * from source",
    ],
)
def test_a_with_is_known_to_what_comes_after_and_within(sql: str) -> None:
    check_transform(sql, [], row_by_row=False)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("select " + "(" * 61 + "1" + ")" * 61 + " from source", "nested more than 60 deep"),
        ("select '" + "x" * 20_000 + "' from source", "20000 are allowed"),
        ("select " + "not " * 4_000 + "true from source", "too deep to be read"),
    ],
    ids=["deep", "long", "recursive"],
)
def test_what_would_cost_too_much_to_read_is_refused(sql: str, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        check_transform(sql, ["id"], row_by_row=False)


def test_whatever_the_parser_trips_over_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def trip(*args: object, **kwargs: object) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr("refill.guards.parsing.sqlglot.parse", trip)
    with pytest.raises(Invalid, match="not valid Spark SQL: list index out of range"):
        check_transform("select * from source", [], row_by_row=False)


def test_parentheses_in_a_text_are_no_nesting() -> None:
    check_transform(f"select '{'(' * 100}' as a, id from source", ["id"], row_by_row=False)
