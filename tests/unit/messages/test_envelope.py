"""The message around a record: what it says, and the keys it is known by."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from refill.connectors.kit.envelope import Envelope
from refill.domain.slice import NativeExtent, Ticket
from refill.domain.table import Table
from tests.integration.messages.orders import make_job, make_ticket
from tests.specs import pg_column

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
KEYS = pa.schema([pa.field("a", pa.string()), pa.field("b", pa.string())])


def keyed_by(*names: str) -> Table:
    columns = tuple(pg_column(name=name, type="text", oid=25) for name in ("a", "b"))
    return Table(schema_name="public", name="pairs", columns=columns, primary_key=names)


def messages_of(batch: pa.RecordBatch, table: Table | None, **spec: Any) -> list[dict[str, Any]]:
    job = make_job(table=table, **spec)
    envelope = Envelope(job, make_ticket(3), batch.schema, now=lambda: NOW)
    return [json.loads(text) for text in envelope.wrap(batch).values()]


def pairs(values: list[tuple[str, str]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([pair[n] for pair in values], pa.string()) for n in (0, 1)], schema=KEYS
    )


def test_a_message_says_what_the_dialect_says() -> None:
    consumer = {"id": "c", "name": "orders", "annotations": {"team": 'a"b'}}
    database = {"id": "d", "name": "shop", "annotations": {}, "database": "s", "hostname": "h"}
    batch = pa.RecordBatch.from_pydict({"id": [7], "note": ["x"]})
    job = make_job(message={"consumer": consumer, "database": database})
    envelope = Envelope(job, make_ticket(), batch.schema, now=lambda: NOW)
    messages = envelope.wrap(batch)
    message = json.loads(messages.values()[0])
    assert list(message) == ["record", "changes", "action", "metadata"]
    assert message["record"] == {"id": 7, "note": "x"}
    assert message["changes"] is None
    assert message["action"] == "read"
    assert message["metadata"] == {
        "table_schema": "public",
        "table_name": "orders",
        "commit_timestamp": "2026-01-02T03:04:05.000678Z",
        "commit_lsn": None,
        "commit_idx": None,
        "database_name": "shop",
        "transaction_annotations": None,
        "enrichment": None,
        "idempotency_key": base64.b64encode(f"{job.backfill_uid}:7".encode()).decode(),
        "record_pks": ["7"],
        "consumer": consumer,
        "database": database,
    }
    record, metadata = messages.parts()
    assert json.loads(record[0]) == message["record"]
    assert json.loads(metadata[0]) == message["metadata"]
    assert messages.key is not None
    assert messages.key.to_list() == ["7"]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.text(':\\ab"', max_size=4), st.text(':\\ab"', max_size=4)), unique=True)
)
def test_two_rows_never_share_a_key(values: list[tuple[str, str]]) -> None:
    job = make_job(table=keyed_by("a", "b"))
    batch = pairs(values)
    messages = Envelope(job, make_ticket(), batch.schema).wrap(batch)
    assert messages.key is not None
    assert messages.key.n_unique() == len(values)
    assert messages.idempotency_key.n_unique() == len(values)
    found = [json.loads(text)["metadata"]["record_pks"] for text in messages.values()]
    assert found == [list(pair) for pair in values]


def test_colons_and_backslashes_in_a_key_are_escaped() -> None:
    (message,) = messages_of(pairs([("a:b", "c\\d")]), keyed_by("a", "b"))
    known_as = base64.b64decode(message["metadata"]["idempotency_key"]).decode()
    assert known_as.partition(":")[2] == "a\\:b:c\\\\d"


def test_a_table_without_a_key_goes_by_slice_and_place() -> None:
    job = make_job(table=keyed_by())
    batch = pairs([("x", "y"), ("x", "y")])
    pages = NativeExtent(label="pages", same_order=True, native={"first": 0})
    envelope = Envelope(job, in_pages(make_ticket(3), pages), batch.schema)
    first, second = envelope.wrap(batch), envelope.wrap(batch)
    assert first.key is None
    known = [*first.idempotency_key, *second.idempotency_key]
    places = [base64.b64decode(key).decode().removeprefix(f"{job.backfill_uid}:") for key in known]
    assert places == ["3:0", "3:1", "3:2", "3:3"]
    again = Envelope(job, in_pages(make_ticket(3, attempt=2), pages), batch.schema).wrap(batch)
    assert again.idempotency_key.to_list() == first.idempotency_key.to_list()


def test_a_view_without_a_key_is_never_taken_for_what_an_older_attempt_sent() -> None:
    """It may be read in another order, or be another one by then."""
    job, batch = make_job(table=keyed_by()), pairs([("x", "y"), ("z", "y")])
    first = Envelope(job, make_ticket(3), batch.schema).wrap(batch)
    again = Envelope(job, make_ticket(3, attempt=2), batch.schema).wrap(batch)
    assert not set(first.idempotency_key) & set(again.idempotency_key)


def in_pages(ticket: Ticket, pages: NativeExtent) -> Ticket:
    return ticket.model_copy(update={"extent": pages})


def test_after_a_transform_the_record_has_its_columns() -> None:
    batch = pa.RecordBatch.from_pydict({"total": [1.5], "b": ["k"]})
    (message,) = messages_of(batch, keyed_by("b"))
    assert message["record"] == {"total": 1.5, "b": "k"}
    assert message["metadata"]["record_pks"] == ["k"]


def test_timestamps_follow_the_sinks_format() -> None:
    batch = pa.RecordBatch.from_pydict({"a": ["k"], "at": [NOW]})
    (plain,) = messages_of(batch, keyed_by("a"))
    assert plain["record"]["at"] == "2026-01-02T03:04:05.000678Z"
    (unix,) = messages_of(batch, keyed_by("a"), timestamp_format="unix_microsecond")
    assert unix["record"]["at"] == 1767323045000678
    assert unix["metadata"]["commit_timestamp"] == "2026-01-02T03:04:05.000678Z"


def test_wide_rows_are_encoded_a_few_at_a_time() -> None:
    batch = pa.RecordBatch.from_pydict({"a": ["x" * 1_000_000] * 40, "b": ["y"] * 40})
    envelope = Envelope(make_job(table=keyed_by("b")), make_ticket(), batch.schema)
    assert max(portion.num_rows for portion in envelope.portions(batch)) <= 17
    assert sum(portion.num_rows for portion in envelope.portions(batch)) == 40
