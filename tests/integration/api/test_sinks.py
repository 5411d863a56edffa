"""Sinks and HTTP endpoints over HTTP."""

import sys
from typing import Any

import httpx
import pytest

from refill.connectors.webhook import WebhookOptions, with_endpoint
from tests.integration.api.running import Running, answer

ENDPOINTS = "/api/destinations/http_endpoints"


def body(server: Running, reads: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": server.name("sink"),
        "database": reads,
        "destination": {"type": "files", "path": server.name("out")},
        **changes,
    }


def test_a_sink_answers_in_the_originals_shape(server: Running, api: httpx.Client) -> None:
    database = server.make_database(api)
    asked = {
        "name": server.name("sink"),
        "status": "active",
        "database": database["name"],
        "source": {
            "include_schemas": None,
            "exclude_schemas": None,
            "include_tables": ["public.orders"],
            "exclude_tables": None,
        },
        "tables": [{"name": "public.orders", "group_column_names": ["region"]}],
        "actions": ["insert", "update", "delete"],
        "destination": {"type": "files", "path": "x", "format": "jsonl"},
        "filter": "none",
        "transform": "none",
        "routing": "none",
        "enrichment": "none",
        "message_grouping": True,
        "load_shedding_policy": "pause_on_full",
        "batch_size": 50,
        "max_retry_count": None,
        "timestamp_format": "iso8601",
        "annotations": {"owner": "data"},
    }
    made = answer(api.post("/api/sinks", json=asked), 200)
    assert {name: made[name] for name in asked} == asked
    assert made["active_backfills"] == []
    assert made["health"]["status"] == "healthy"
    assert answer(api.get(f"/api/sinks/{made['name']}"), 200) == made
    assert made in answer(api.get("/api/sinks"), 200)["data"]


def test_two_sinks_do_not_replace_each_others_files(server: Running, api: httpx.Client) -> None:
    database = server.make_database(api)["name"]
    place = {"type": "files", "path": server.name("shared")}

    def asked(*tables: str) -> dict[str, Any]:
        source = {"include_tables": list(tables)} if tables else {"include_schemas": ["public"]}
        return body(server, database, destination=place, source=source)

    first = answer(api.post("/api/sinks", json=asked("public.orders")), 200)
    for again in (asked("public.orders"), asked("public.orders", "public.items"), asked()):
        refusal = answer(api.post("/api/sinks", json=again), 422)
        assert (
            f"the sink {first['name']} writes"
            in (refusal["validation_errors"]["destination.path"][0])
        )
    answer(api.post("/api/sinks", json=asked("public.items")), 200)
    answer(api.patch(f"/api/sinks/{first['name']}", json={"batch_size": 7}), 200)


@pytest.mark.parametrize("key", ["load_shedding_policy", "message_grouping"])
def test_what_is_not_supported_yet_says_so(server: Running, api: httpx.Client, key: str) -> None:
    database = server.make_database(api)["name"]
    for nothing in ("none", None):
        answer(api.post("/api/sinks", json=body(server, database, **{key: nothing})), 200)
    refusal = answer(api.post("/api/sinks", json=body(server, database, **{key: "mine"})), 422)
    assert "not supported yet" in refusal["validation_errors"][key][0]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"destination": {"type": "pigeon"}}, "destination.type"),
        ({"destination": {"type": "files"}}, "destination.path"),
        ({"destination": {"type": "files", "path": "x", "colour": 1}}, "destination.colour"),
        ({"destination": {"path": "x"}}, "destination.type"),
        ({"status": "asleep"}, "status"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": "50"}, "batch_size"),
        ({"actions": ["truncate"]}, "actions.0"),
        ({"timestamp_format": "roman"}, "timestamp_format"),
        ({"transform": "my-function"}, "transform"),
        ({"filter": "my-function"}, "filter"),
        ({"transform": {"sql": ""}}, "transform.sql"),
        ({"source": {"include_table": []}}, "source.include_table"),
    ],
)
def test_fields_that_make_no_sense_are_422_on_their_place(
    server: Running, api: httpx.Client, changes: dict[str, Any], field: str
) -> None:
    database = server.make_database(api)["name"]
    refusal = answer(api.post("/api/sinks", json=body(server, database, **changes)), 422)
    assert field in refusal["validation_errors"]


@pytest.mark.parametrize("path", ["../x", "/etc", "a/../../b"])
def test_a_path_out_of_the_teams_folder_is_422(
    server: Running, api: httpx.Client, path: str
) -> None:
    database = server.make_database(api)["name"]
    destination = {"type": "files", "path": path}
    refusal = answer(
        api.post("/api/sinks", json=body(server, database, destination=destination)), 422
    )
    assert "destination.path" in refusal["validation_errors"]


def test_secrets_of_a_destination_never_come_back(server: Running, api: httpx.Client) -> None:
    destination = {
        "type": "postgres",
        "hostname": "127.0.0.1",
        "database": "lake",
        "username": "writer",
        "password": "hush-hush",
    }
    sink = server.make_sink(api, destination=destination)
    path = f"/api/sinks/{sink['id']}"
    shown = api.get(path)
    assert "hush-hush" not in shown.text + api.get("/api/sinks").text
    # sent back as it was read, with one field changed: the secret stays
    changed = {**shown.json()["destination"], "username": "other"}
    answer(api.patch(path, json={"destination": changed}), 200)
    stored = server.store.get_sink(1, sink["id"]).destination_options
    assert (stored["username"], stored["password"]) == ("other", "hush-hush")
    answer(api.post(f"{path}/backfills"), 200)
    spec = server.store.list_backfills(1, pipeline_id=sink["id"]).items[0].spec
    assert "hush-hush" not in spec.model_dump_json()


def test_an_update_leaves_what_is_not_given(server: Running, api: httpx.Client) -> None:
    sink = server.make_sink(api, annotations={"a": 1}, batch_size=7)
    changed = answer(api.put(f"/api/sinks/{sink['name']}", json={"status": "paused"}), 200)
    assert changed["status"] == "paused"
    assert changed["batch_size"] == 7
    assert changed["annotations"] == {"a": 1}
    assert changed["source"] == sink["source"]
    renamed = answer(api.patch(f"/api/sinks/{sink['id']}", json={"name": sink["name"] + "-2"}), 200)
    assert renamed["id"] == sink["id"]
    answer(api.get(f"/api/sinks/{sink['name']}"), 404)


def test_a_deleted_sink_takes_its_active_backfills_with_it(
    server: Running, api: httpx.Client
) -> None:
    path, made = server.make_backfill(api)
    sink = path.removesuffix("/backfills")
    gone = answer(api.delete(sink), 200)
    assert gone["deleted"] is True
    assert set(gone) == {"id", "deleted"}
    answer(api.get(path), 404)
    listed = answer(api.get("/api/backfills?state=cancelled"), 200)["data"]
    assert made["id"] in [one["id"] for one in listed]


def test_sinks_are_listed_page_by_page(server: Running) -> None:
    team = server.make_team()
    with server.client(server.make_token(team_id=team)) as api:
        database = server.make_database(api)["name"]
        for _ in range(3):
            server.make_sink(api, database=database)
        everything = answer(api.get("/api/sinks"), 200)
        assert list(everything) == ["data"]
        first = answer(api.get("/api/sinks?limit=2"), 200)
        rest = answer(api.get(f"/api/sinks?limit=2&cursor={first['next_cursor']}"), 200)
        assert first["data"] + rest["data"] == everything["data"]
        assert rest["next_cursor"] is None


def test_an_endpoint_keeps_its_encrypted_headers_to_itself(
    server: Running, api: httpx.Client
) -> None:
    asked = {
        "name": server.name("hook"),
        "url": "https://hooks.example/in",
        "headers": {"house": "atreides"},
        "encrypted_headers": {"Authorization": "Bearer hush-hush"},
    }
    made = api.post(ENDPOINTS, json=asked)
    shown = answer(made, 200)
    assert shown["headers"] == asked["headers"]
    path = f"{ENDPOINTS}/{shown['name']}"
    assert "hush-hush" not in made.text + api.get(path).text + api.get(ENDPOINTS).text
    back = {"encrypted_headers": shown["encrypted_headers"], "url": "https://hooks.example/2"}
    assert answer(api.put(path, json=back), 200)["url"] == "https://hooks.example/2"
    stored = server.store.get_endpoint(1, shown["id"])
    assert stored.encrypted_headers == asked["encrypted_headers"]
    answer(api.patch(path, json={"encrypted_headers": {}}), 200)
    assert server.store.get_endpoint(1, shown["id"]).encrypted_headers == {}
    gone = answer(api.delete(path), 200)
    assert gone["id"] == shown["id"]
    answer(api.get(path), 404)


def test_a_webhook_needs_somewhere_to_go(server: Running, api: httpx.Client) -> None:
    asked = body(server, server.make_database(api)["name"], destination={"type": "webhook"})
    refusal = answer(api.post("/api/sinks", json=asked), 422)
    assert refusal["validation_errors"] == {"destination.http_endpoint": ["is required"]}


def test_the_secret_headers_of_a_webhook_survive_being_sent_back(
    server: Running, api: httpx.Client
) -> None:
    headers = {"Authorization": "Bearer hush"}
    sends = {"type": "webhook", "url": "https://hooks.example/in", "headers": headers}
    sink = server.make_sink(api, destination=sends)
    path = f"/api/sinks/{sink['name']}"
    shown = answer(api.get(path), 200)["destination"]
    assert shown["headers"] == {"Authorization": "**********"}
    answer(api.put(path, json={"destination": shown}), 200)
    assert server.store.get_sink(1, sink["id"]).destination_options["headers"] == headers


def test_the_settings_of_tables_do_not_restrict_a_sink(server: Running, api: httpx.Client) -> None:
    made = server.make_sink(api, source=None, tables=[{"name": "public.orders"}])
    assert made["source"]["include_tables"] is None
    path = f"/api/sinks/{made['name']}"
    answer(api.post(f"{path}/backfills", json={"table": "public.others"}), 200)
    changed = answer(api.patch(path, json={"tables": [{"name": "public.items"}]}), 200)
    assert changed["source"] == made["source"]


def test_an_id_is_found_in_either_case(server: Running, api: httpx.Client) -> None:
    sink = server.make_sink(api)
    assert answer(api.get(f"/api/sinks/{sink['id'].upper()}"), 200) == sink


def test_a_sink_follows_its_endpoint_to_another_name(server: Running, api: httpx.Client) -> None:
    hook = answer(
        api.post(ENDPOINTS, json={"name": server.name("hook"), "url": "https://hooks.example/in"}),
        200,
    )
    sends = {"type": "webhook", "http_endpoint": hook["name"]}
    sink = server.make_sink(api, destination=sends)
    assert sink["destination"]["http_endpoint"] == hook["name"]
    renamed = server.name("hook")
    answer(api.patch(f"{ENDPOINTS}/{hook['name']}", json={"name": renamed}), 200)
    path = f"/api/sinks/{sink['name']}"
    assert answer(api.get(path), 200)["destination"]["http_endpoint"] == renamed
    answer(api.patch(path, json={"batch_size": 7}), 200)
    stored = server.store.get_sink(1, sink["id"]).destination_options
    assert stored["http_endpoint"] == hook["id"]
    unknown = {"destination": {**sends, "http_endpoint": "nobody"}}
    assert "`http_endpoint`" in answer(api.patch(path, json=unknown), 404)["summary"]
    answer(api.delete(f"{ENDPOINTS}/{renamed}"), 422)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"url": "ftp://x/"}, "url"),
        ({"url": "https://"}, "url"),
        ({"url": "https://u:p@hooks.example/"}, "url"),
        ({"url": "https://hooks.example/\r\nX: y"}, "url"),
        ({"headers": {"a b": "c"}}, "headers"),
        ({"headers": {"a": "c\r\nX: y"}}, "headers"),
        ({"encrypted_headers": {"": "c"}}, "encrypted_headers"),
        ({"headers": {"a": 1}}, "headers.a"),
        ({"headers": {"content-TYPE": "text/xml"}}, "headers"),
        ({"encrypted_headers": {"Host": "elsewhere"}}, "encrypted_headers"),
    ],
)
def test_an_endpoint_that_cannot_be_sent_to_is_422(
    api: httpx.Client, changes: dict[str, Any], field: str
) -> None:
    asked = {"name": "never", "url": "https://hooks.example/", **changes}
    refusal = answer(api.post(ENDPOINTS, json=asked), 422)
    assert field in refusal["validation_errors"]


def test_an_update_to_a_header_that_refill_sets_is_422_and_names_it(
    server: Running, api: httpx.Client
) -> None:
    asked = {"name": server.name("hook"), "url": "https://hooks.example/"}
    path = f"{ENDPOINTS}/{answer(api.post(ENDPOINTS, json=asked), 200)['id']}"
    refusal = answer(api.patch(path, json={"headers": {"Content-Type": "text/xml"}}), 422)
    assert "Content-Type" in refusal["validation_errors"]["headers"][0]


def test_the_content_type_that_is_sent_anyway_may_be_written_out(
    server: Running, api: httpx.Client
) -> None:
    headers = {"Content-Type": "application/json"}
    asked = {"name": server.name("hook"), "url": "https://hooks.example/", "headers": headers}
    assert answer(api.post(ENDPOINTS, json=asked), 200)["headers"] == headers
    stored = server.store.get_endpoint(1, asked["name"])
    WebhookOptions(**with_endpoint({}, stored))


def test_a_sink_without_its_driver_is_neither_made_nor_changed(
    server: Running, api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sends = {"type": "rabbitmq", "host": "127.0.0.1", "exchange": "orders"}
    made = server.make_sink(api, destination=sends)
    monkeypatch.setitem(sys.modules, "pika", None)
    asked = body(server, made["database"], destination=sends)
    for refused in (
        api.post("/api/sinks", json=asked),
        api.patch(f"/api/sinks/{made['id']}", json={"destination": {**sends, "port": 5673}}),
    ):
        refusal = answer(refused, 422)
        assert refusal["code"] == "misconfigured"
        assert "needs the package 'pika'" in refusal["summary"]
        assert "pip install 'refill-backfills[rabbitmq]'" in refusal["summary"]
    answer(api.get(f"/api/sinks/{asked['name']}"), 404)
    # what is there can still be looked at, held back and deleted
    assert answer(api.patch(f"/api/sinks/{made['id']}", json={"status": "paused"}), 200)
    assert answer(api.get(f"/api/sinks/{made['id']}"), 200)["destination"] == made["destination"]
    answer(api.delete(f"/api/sinks/{made['id']}"), 200)


KAFKA = {"type": "kafka", "hosts": "localhost:1", "topic": "orders"}


def test_what_is_said_in_sql_or_by_a_path_comes_back_as_it_was(
    server: Running, api: httpx.Client
) -> None:
    database = server.make_database(api)["name"]
    source = {"include_tables": ["public.orders"]}
    fields: dict[str, Any] = {
        "filter": {"sql": "amount > 10 and region = 'r1'"},
        "transform": {"path": "record.id"},
        "routing": {"sql": "select concat('orders-', region) as topic, id as key from source"},
        "enrichment": {"sql": "select id, label from codes, orders where id = any(:keys)"},
        "numeric_format": "number",
    }
    asked = body(server, database, destination=KAFKA, source=source, **fields)
    made = answer(api.post("/api/sinks", json=asked), 200)
    assert {name: made[name] for name in fields} == fields
    place = f"/api/sinks/{made['id']}"
    changed = answer(api.patch(place, json={"transform": {"sql": "select * from source"}}), 200)
    assert changed["transform"] == {"sql": "select * from source"}
    assert changed["routing"] == fields["routing"]
    inside = {"column_name": "region", "operator": "=", "comparison_value": "r1"}
    nothing = {"routing": "none", "enrichment": None, "filter": [inside], "transform": "none"}
    dropped = answer(api.patch(place, json=nothing), 200)
    assert (dropped["routing"], dropped["enrichment"]) == ("none", "none")
    assert dropped["filter"] == [inside | {"field_path": None}]
    plain = answer(api.post("/api/sinks", json=body(server, database)), 200)
    assert plain["numeric_format"] == "string"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("transform", "my-function", '{"path": "record.id"}'),
        ("transform", {"function": "x"}, "as message from source"),
        ("filter", "my-filter", '{"sql": "amount > 10'),
        ("routing", "my-routing", "as topic"),
        ("enrichment", "mine", "any(:keys)"),
        ("transform", {"path": "nothing"}, "must begin with one of"),
        ("transform", {"path": "record", "sql": "select * from source"}, "either sql or path"),
        ("routing", {"sql": "select region as subject from source"}, "topic, key, headers"),
        ("routing", {"sql": "select id as key from source where id > 1"}, "the filter says"),
        ("filter", {"sql": "amount >"}, "was refused"),
        ("filter", {"sql": "count(*) > 1"}, "row by row"),
        ("filter", {"sql": "reflect('java.lang.System', 'exit') = 1"}, "not among those"),
        ("enrichment", {"sql": "select * from codes"}, ":keys"),
        ("enrichment", {"sql": "delete from codes where id = any(:keys)"}, "SELECT"),
    ],
)
def test_what_a_sink_cannot_do_is_told_with_what_it_can(
    server: Running, api: httpx.Client, field: str, value: Any, said: str
) -> None:
    database = server.make_database(api)["name"]
    source = {"include_tables": ["public.orders"]}
    asked = body(server, database, destination=KAFKA, source=source, **{field: value})
    refusal = answer(api.post("/api/sinks", json=asked), 422)
    assert any(said in problem for problem in refusal["validation_errors"][field])


def test_files_take_rows_and_no_routing(server: Running, api: httpx.Client) -> None:
    database = server.make_database(api)["name"]
    for field, value in {
        "transform": {"path": "record"},
        "routing": {"sql": "select id as key from source"},
    }.items():
        refusal = answer(api.post("/api/sinks", json=body(server, database, **{field: value})), 422)
        assert "takes rows" in refusal["validation_errors"][field][0]
