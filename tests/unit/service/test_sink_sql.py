"""A sink's SQL, path and routing against the table that they are about."""

from typing import Any

import pytest

from refill.connectors.kit.registry import load_connectors
from refill.domain.errors import Invalid
from refill.domain.pipeline import Condition, Operator, SinkTable
from refill.domain.table import Table
from refill.guards.sink_sql import compose, message_form, simple_conditions
from refill.service.sink_checks import check_sql
from refill.service.sink_sql import check_message, frozen_sql, group_columns
from tests.contract.store.factories import make_sink
from tests.specs import pg_column

CONNECTORS = load_connectors()
ORDERS = Table(
    schema_name="public",
    name="orders",
    columns=(
        pg_column(name="id", type="bigint", oid=20, not_null=True),
        pg_column(name="region", type="text", oid=25),
        pg_column(name="code", type="character(3)", oid=1042),
        pg_column(name="amount", type="numeric", oid=1700),
        pg_column(name="details", type="jsonb", oid=3802),
        pg_column(name="message", type="text", oid=25),
    ),
    primary_key=("id",),
)


def sink(**fields: Any) -> Any:
    return make_sink("d", filter=(), tables=fields.pop("tables", ()), **fields)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"message_path": "record.nothing"}, "has no column nothing"),
        ({"message_path": "action.name"}, "must begin with one of"),
        ({"routing": "select nothing as topic from source"}, "nothing"),
        ({"routing": "select region as topic, id as topic from source"}, "once each"),
        ({"filter_sql": "nothing > 1"}, "nothing"),
        ({"filter_sql": "select 1"}, "filter"),
        ({"filter_sql": "id in (select id from source)"}, "filter"),
        ({"enrichment": "select 1 as id where 1 = any(:ids)"}, ":keys"),
    ],
)
def test_what_does_not_fit_the_table_is_refused(fields: dict[str, str], said: str) -> None:
    with pytest.raises(Invalid, match=said):
        check_message(sink(**fields), CONNECTORS["postgres"], CONNECTORS["kafka"], (ORDERS,))


def test_what_fits_is_taken() -> None:
    fields = {
        "message_path": "record.details",
        "routing": "select concat('o-', region) as topic from source",
        "filter_sql": "amount > 1 and details ->> 'kind' = 'a'",
        "enrichment": "select id from other where id = any(:keys)",
    }
    check_message(sink(**fields), CONNECTORS["postgres"], CONNECTORS["kafka"], (ORDERS,))


def test_the_pieces_become_one_select() -> None:
    sql = compose(
        "select id, upper(region) as region from source where id > 0",
        "amount > 1 or region = 'x'",
        "select concat('o-', region) as topic from source",
    )
    assert sql == (
        "SELECT id, UPPER(region) AS region, CONCAT('o-', region) AS __refill_route_topic "
        "FROM source WHERE id > 0 AND (amount > 1 OR region = 'x')"
    )
    assert compose("select  *  from source", None, None) == "select  *  from source"


@pytest.mark.parametrize(
    ("sql", "form"),
    [
        ("select id, struct(id) as message from source", "value"),
        ("select id, to_json(struct(id)) as message from source", "json"),
        ("select id, details as message from source", "value"),
        ("select id, message from source", None),
        ("select id, message as message from source", None),
        ("select * from source", None),
    ],
)
def test_only_sql_that_makes_a_message_replaces_it(sql: str, form: str | None) -> None:
    assert message_form(sql) == form


@pytest.mark.parametrize(
    "condition",
    [
        "code = 'a'",
        "region > 'a'",
        "amount > id",
        "amount > 1 or id = 2",
        "id = '1'",
        "id > 1.5",
        "details ->> 'n' > 5",
        "not (amount > 1)",
        "lower(region) = 'x'",
    ],
)
def test_what_plain_comparisons_cannot_say_is_left_to_spark(condition: str) -> None:
    assert simple_conditions(condition, ORDERS.columns) is None
    assert frozen_sql(sink(filter_sql=condition), ORDERS)["transform"] is not None


def test_what_plain_comparisons_can_say_needs_no_spark() -> None:
    found = frozen_sql(
        sink(filter_sql="(amount > 1.5 and id <> 3) and details ->> 'a' = 'x' and code is null"),
        ORDERS,
    )
    assert found["transform"] is None
    assert found["filter"] == (
        Condition(column_name="amount", operator=Operator.GT, comparison_value="1.5"),
        Condition(column_name="id", operator=Operator.NE, comparison_value="3"),
        Condition(
            column_name="details", operator=Operator.EQ, comparison_value="x", field_path="a"
        ),
        Condition(column_name="code", operator=Operator.IS_NULL),
    )


def test_sql_keeps_what_groups_the_messages() -> None:
    grouped = sink(tables=(SinkTable(name="orders", group_column_names=("region",)),))
    groups = group_columns(grouped, ORDERS)
    assert groups == ("region",)
    check_sql("select id, region from source", ORDERS, groups)
    with pytest.raises(Invalid, match="region must be selected as it is"):
        check_sql("select id, upper(region) as region from source", ORDERS, groups)
