"""`refill backfills`: ask for history again, watch it, steer it. Over HTTP, in both dialects."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from refill.cli.client import Client
from refill.cli.options import with_client
from refill.cli.output import (
    ExitCode,
    Json,
    Stopped,
    console,
    print_json,
    print_record,
    print_table,
)
from refill.cli.remote import STATES, RemoteBackfills
from refill.cli.view import View, spoken_seconds, view_sink_backfill, view_transfer_backfill
from refill.cli.watch import watch as watch_views

app = typer.Typer(
    help="Backfills: create, list, show, watch, plan, pause, resume, cancel, retry, slices, "
    "rejects."
)

Id = Annotated[str, typer.Argument(help="A sink's backfill (a UUID) or a transfer's (a number).")]
Sink = Annotated[str | None, typer.Option("--sink", help="The sink, by name or id.")]
TableName = Annotated[str | None, typer.Option("--table", help="Which of the sink's tables.")]
SortColumn = Annotated[str | None, typer.Option(help="Slice by this column, not the key.")]
Start = Annotated[str | None, typer.Option(help="First value of the sort column, inclusive.")]
End = Annotated[str | None, typer.Option(help="Last value of the sort column, inclusive.")]
Throttle = Annotated[int | None, typer.Option(min=1, help="Read no faster than this.")]
Transfer = Annotated[int | None, typer.Option("--transfer", help="The transfer's id.")]
From = Annotated[str | None, typer.Option("--from", help="First date, YYYY-MM-DD.")]
To = Annotated[str | None, typer.Option("--to", help="Last date, inclusive.")]
Order = Annotated[str | None, typer.Option(help="newest_first or oldest_first.")]
Concurrency = Annotated[int | None, typer.Option(min=1, help="Runs side by side, at most.")]
Exclude = Annotated[list[str] | None, typer.Option("--exclude-date", help="Leave this date out.")]
Only = Annotated[str | None, typer.Option(help="all, missing or failed dates.")]
Reason = Annotated[str | None, typer.Option(help="Why; it stays on record.")]
Watch = Annotated[bool, typer.Option("--watch", help="Stay and show how far it is.")]
Dates = Annotated[list[str] | None, typer.Option("--date", help="Only this failed date.")]


@app.command()
@with_client
def create(
    client: Client,
    sink: Sink = None,
    table: TableName = None,
    sort_column: SortColumn = None,
    start_position: Start = None,
    end_position: End = None,
    max_rows_per_second: Throttle = None,
    transfer: Transfer = None,
    range_start: From = None,
    range_end: To = None,
    order: Order = None,
    max_concurrent_runs: Concurrency = None,
    exclude_dates: Exclude = None,
    only: Only = None,
    reason: Reason = None,
    watch: Watch = False,
    json: Json = False,
) -> None:
    """Ask for a backfill: of a sink's table, or of a transfer's dates."""
    given = {**locals()}
    backfills = RemoteBackfills(client)
    view = _created(_ask(backfills, given, dry_run=False), sink)
    if watch:
        _watch(backfills, [view.id], json)
    else:
        _show(view, json)


@app.command()
@with_client
def plan(
    client: Client,
    sink: Sink = None,
    table: TableName = None,
    sort_column: SortColumn = None,
    start_position: Start = None,
    end_position: End = None,
    max_rows_per_second: Throttle = None,
    transfer: Transfer = None,
    range_start: From = None,
    range_end: To = None,
    order: Order = None,
    max_concurrent_runs: Concurrency = None,
    exclude_dates: Exclude = None,
    only: Only = None,
    reason: Reason = None,
    json: Json = False,
) -> None:
    """What a backfill would do, without creating it."""
    planned = _ask(RemoteBackfills(client), {**locals()}, dry_run=True)
    if json:
        print_json(planned)
    elif sink:
        print_record(
            {
                "table": planned["table"],
                "sliced by": planned["sort_column"] or "pages, under one snapshot",
                "rows, about": f"{planned['estimated_rows']:,}",
                "slices": planned["slices_total"],
                "blocked by": planned["blocked_by"] or "nothing",
            }
        )
        shown = planned["slices"]
        print_table(["above", "up to"], [(each["lower"], each["upper"]) for each in shown])
    else:
        blocked = planned["blocked_by"]
        print_record({"runs": planned["transfer_runs_total"], "blocked by": blocked or "nothing"})
        print_table(
            ["date", "action", "reason", "replaces rows"],
            [(d["date"], d["action"], d["reason"], d["replaces"]) for d in planned["dates"]],
        )


@app.command("list")
@with_client
def list_(
    client: Client,
    state: Annotated[
        str | None, typer.Option(help="Only active, paused, completed, failed or cancelled ones.")
    ] = None,
    json: Json = False,
) -> None:
    """The team's backfills; of transfers, those not yet done, as their API has it."""
    if state is not None and state not in STATES:
        raise Stopped(f"There is no state {state!r}; there are {', '.join(STATES)}.")
    views = RemoteBackfills(client).list_all(state)
    if json:
        print_json([view.raw for view in views])
        return
    print_table(
        ["id", "pipeline", "of", "state", "done", "rows", "rows/s", "left"],
        [
            (
                view.id,
                view.pipeline,
                view.subject,
                view.state,
                f"{view.fraction:.0%}",
                f"{view.rows:,}",
                f"{view.rows_per_second or 0:,.0f}",
                "" if view.ended else spoken_seconds(view.eta_seconds),
            )
            for view in views
        ],
    )


@app.command()
@with_client
def show(client: Client, backfill_id: Id, json: Json = False) -> None:
    """One backfill, with everything the server says of it."""
    _show(RemoteBackfills(client).show(backfill_id), json)


@app.command()
@with_client
def watch(
    client: Client,
    backfill_ids: Annotated[list[str], typer.Argument(help="One or more backfills.")],
    json: Json = False,
) -> None:
    """Stay until they end. Exits 0 done, 1 failed, 2 cancelled, 3 some dates failed."""
    _watch(RemoteBackfills(client), backfill_ids, json)


@app.command()
@with_client
def pause(client: Client, backfill_id: Id, json: Json = False) -> None:
    """Start no more slices; those running finish."""
    _show(RemoteBackfills(client).set_state(backfill_id, "paused"), json)


@app.command()
@with_client
def resume(client: Client, backfill_id: Id, json: Json = False) -> None:
    """Go on with a paused backfill."""
    _show(RemoteBackfills(client).set_state(backfill_id, "active"), json)


@app.command()
@with_client
def cancel(client: Client, backfill_id: Id, json: Json = False) -> None:
    """End it for good; slices that run now still finish."""
    _show(RemoteBackfills(client).set_state(backfill_id, "cancelled"), json)


@app.command()
@with_client
def retry(client: Client, backfill_id: Id, dates: Dates = None, json: Json = False) -> None:
    """Run again what failed, and only that."""
    _show(RemoteBackfills(client).retry(backfill_id, dates or []), json)


@app.command()
@with_client
def slices(client: Client, backfill_id: Id, json: Json = False) -> None:
    """Its slices, each with its state, rows and error."""
    _list_parts(client, backfill_id, "slices", json)


@app.command()
@with_client
def rejects(client: Client, backfill_id: Id, json: Json = False) -> None:
    """The rows that could not be delivered, each with its key and why."""
    _list_parts(client, backfill_id, "rejects", json)


def _ask(
    backfills: RemoteBackfills, given: Mapping[str, Any], *, dry_run: bool
) -> Mapping[str, Any]:
    sink, transfer = given["sink"], given["transfer"]
    if (sink is None) == (transfer is None):
        raise Stopped("Say which: --sink NAME [--table …], or --transfer ID --from DATE --to DATE.")
    of_sinks = ("table", "sort_column", "start_position", "end_position", "max_rows_per_second")
    of_transfers = (
        *("range_start", "range_end", "order", "max_concurrent_runs"),
        *("exclude_dates", "only"),
    )
    wrong = of_sinks if transfer is not None else of_transfers
    for name in wrong:
        if given.get(name):
            raise Stopped(f"{_FLAGS.get(name, name)} belongs to the other kind of backfill.")
    names = (*(of_sinks if sink is not None else of_transfers), "reason")
    body = {name: given[name] for name in names if given.get(name)}
    if dry_run:
        body["dry_run"] = True
    if sink is not None:
        return backfills.create_for_sink(sink, body)
    if "range_start" not in body or "range_end" not in body:
        raise Stopped("A transfer's backfill needs its dates: --from YYYY-MM-DD --to YYYY-MM-DD.")
    return backfills.create_for_transfer(int(transfer), body)


_FLAGS = {
    "range_start": "--from",
    "range_end": "--to",
    "exclude_dates": "--exclude-date",
    "max_concurrent_runs": "--max-concurrent-runs",
    "order": "--order",
    "only": "--only",
    "table": "--table",
    "sort_column": "--sort-column",
    "start_position": "--start-position",
    "end_position": "--end-position",
    "max_rows_per_second": "--max-rows-per-second",
}


def _created(raw: Mapping[str, Any], sink: str | None) -> View:
    return view_sink_backfill(raw) if sink is not None else view_transfer_backfill(raw)


def _show(view: View, json: bool) -> None:
    if json:
        print_json(view.raw)
    else:
        print_record({name: value for name, value in view.raw.items() if value not in (None, [])})


def _watch(backfills: RemoteBackfills, ids: list[str], json: bool) -> None:
    out = console(stderr=json)
    views = watch_views(lambda: [backfills.show(each) for each in ids], out)
    if json:
        print_json([view.raw for view in views] if len(views) > 1 else views[0].raw)
    codes = {view.exit_code for view in views}
    for code in (ExitCode.ERROR, ExitCode.FAILED_DATES, ExitCode.CANCELLED):
        if code in codes:
            raise Stopped(code=code)


def _list_parts(client: Client, backfill_id: str, noun: str, json: bool) -> None:
    found = list(RemoteBackfills(client).parts(backfill_id, noun))
    if json:
        print_json(found)
        return
    columns = list(found[0]) if found else []
    print_table(columns, [[each.get(column) for column in columns] for each in found])
