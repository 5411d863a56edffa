"""The commands over HTTP, against a small server of the standard library."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from refill.cli.root import run
from tests.unit.cli.samples import sink_backfill, transfer_backfill

Routes = dict[str, tuple[int, Any]]


class Server:
    """Answers by route, and remembers what it was asked."""

    def __init__(self, routes: Routes) -> None:
        self.asked: list[tuple[str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(size)) if size else None
                route = f"{self.command} {self.path.split('?')[0]}"
                outer.asked.append((route, body))
                status, said = routes.get(route, (404, {"summary": "Not found"}))
                sent = json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            do_GET = do_POST = do_PATCH = answer

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Routes], Server]]:
    started: list[Server] = []

    def start(routes: Routes) -> Server:
        server = Server(routes)
        started.append(server)
        monkeypatch.setenv("REFILL_URL", server.url)
        monkeypatch.setenv("REFILL_API_KEY", "rf_test")
        return server

    yield start
    for server in started:
        server.close()


Serve = Callable[[Routes], Server]


def test_create_sends_only_what_was_given(serve: Serve, capsys: Any) -> None:
    server = serve({"POST /api/sinks/orders/backfills": (200, sink_backfill())})
    arguments = ["--sink", "orders", "--table", "public.orders", "--reason", "why not"]
    assert run(["backfills", "create", *arguments, "--json"]) == 0
    body = {"table": "public.orders", "reason": "why not"}
    assert server.asked == [("POST /api/sinks/orders/backfills", body)]
    assert json.loads(capsys.readouterr().out)["state"] == "active"


def test_create_for_a_transfer_speaks_the_other_dialect(serve: Serve, capsys: Any) -> None:
    route = "POST /v1/teams/7/transfers/3/backfills"
    server = serve({route: (200, {"data": transfer_backfill()})})
    dates = ["--from", "2026-01-01", "--to", "2026-01-04", "--exclude-date", "2026-01-02"]
    assert run(["backfills", "create", "--transfer", "3", *dates, "--team", "7", "--json"]) == 0
    assert server.asked[0][1] == {
        "range_start": "2026-01-01",
        "range_end": "2026-01-04",
        "exclude_dates": ["2026-01-02"],
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Say which"),
        (["--sink", "a", "--transfer", "1"], "Say which"),
        (["--transfer", "1"], "needs its dates"),
        (["--sink", "a", "--from", "2026-01-01"], "--from belongs"),
        (["--transfer", "1", "--table", "t"], "--table belongs"),
    ],
)
def test_a_create_that_makes_no_sense_is_refused_here(
    serve: Serve, capsys: Any, arguments: list[str], said: str
) -> None:
    server = serve({})
    assert run(["backfills", "create", *arguments]) == 1
    assert said in capsys.readouterr().err
    assert server.asked == []


@pytest.mark.parametrize(
    ("status", "answer", "code", "said"),
    [
        (401, {"summary": "The API key is not known."}, 4, "not known"),
        (403, {"summary": "The key lacks sinks_write."}, 4, "lacks"),
        (422, {"summary": "Validation failed", "validation_errors": {"table": ["no"]}}, 1, "table"),
        (503, {"summary": "The store is busy."}, 1, "busy"),
    ],
)
def test_a_refusal_is_one_sentence_and_a_code(
    serve: Serve, capsys: Any, status: int, answer: Any, code: int, said: str
) -> None:
    serve({"POST /api/sinks/orders/backfills": (status, answer)})
    assert run(["backfills", "create", "--sink", "orders"]) == code
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err


def test_watch_exits_3_when_some_dates_failed(serve: Serve, capsys: Any) -> None:
    failed = transfer_backfill(status="FAILED", transfer_runs_completed=3, transfer_runs_failed=1)
    serve({"GET /v1/teams/1/backfills/12": (200, {"data": failed})})
    assert run(["backfills", "watch", "12", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["status"] == "FAILED"


def test_a_sinks_backfill_is_found_by_its_id_alone(serve: Serve, capsys: Any) -> None:
    raw = sink_backfill()
    path = f"/api/sinks/orders/backfills/{raw['id']}"
    server = serve(
        {
            f"GET /api/backfills/{raw['id']}": (200, raw),
            f"PATCH {path}": (200, {**raw, "state": "cancelled"}),
        }
    )
    assert run(["backfills", "cancel", raw["id"], "--json"]) == 0
    assert server.asked[-1] == (f"PATCH {path}", {"state": "cancelled"})


@pytest.mark.parametrize("written", [str.lower, str.upper, lambda uid: uid.replace("-", "")])
def test_show_asks_once_for_a_sinks_backfill(
    serve: Serve, capsys: Any, written: Callable[[str], str]
) -> None:
    raw = sink_backfill()
    server = serve({f"GET /api/backfills/{raw['id']}": (200, raw)})
    assert run(["backfills", "show", written(raw["id"]), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == raw
    assert [route for route, _ in server.asked] == [f"GET /api/backfills/{raw['id']}"]


def test_show_asks_once_for_a_transfers_backfill(serve: Serve, capsys: Any) -> None:
    raw = transfer_backfill()
    server = serve({"GET /v1/teams/1/backfills/12": (200, {"data": raw})})
    assert run(["backfills", "show", "12", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == raw
    assert [route for route, _ in server.asked] == ["GET /v1/teams/1/backfills/12"]


@pytest.mark.parametrize("unknown", ["12", sink_backfill()["id"]])
def test_a_backfill_that_is_not_there_is_said_so(serve: Serve, capsys: Any, unknown: str) -> None:
    serve({})
    assert run(["backfills", "show", unknown]) == 1
    assert f"No backfill {unknown} was found" in capsys.readouterr().err


def test_the_rejects_of_a_transfers_backfill_are_listed(serve: Serve, capsys: Any) -> None:
    reject = {"transfer_run_date": "2026-01-02", "key": ["7"], "reason": "bad", "detail": None}
    page = {"data": {"rejects": [reject], "next_cursor": None}}
    serve({"GET /v1/teams/1/backfills/12/rejects": (200, page)})
    assert run(["backfills", "rejects", "12", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [reject]


@pytest.mark.parametrize(
    ("state", "found"), [("active", ["orders", "3"]), ("running", ["3"]), ("failed", [])]
)
def test_a_list_by_state_knows_the_words_of_both(
    serve: Serve, capsys: Any, state: str, found: list[str]
) -> None:
    serve(
        {
            "GET /api/backfills": (200, {"data": [sink_backfill()], "next_cursor": None}),
            "GET /v1/teams/1/backfills": (200, {"data": [transfer_backfill()]}),
        }
    )
    assert run(["backfills", "list", "--state", state, "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [str(raw.get("sink_consumer") or raw["transfer_id"]) for raw in listed] == found


def test_a_word_that_is_no_state_is_refused_here(serve: Serve, capsys: Any) -> None:
    server = serve({})
    assert run(["backfills", "list", "--state", "done"]) == 1
    assert "no state 'done'; there are active, paused" in capsys.readouterr().err
    assert server.asked == []


def test_a_transfers_backfill_has_runs_to_look_at(serve: Serve, capsys: Any) -> None:
    server = serve({})
    assert run(["backfills", "slices", "12"]) == 1
    assert "has runs" in capsys.readouterr().err
    assert server.asked == []


def test_list_shows_what_the_key_may_read(serve: Serve, capsys: Any) -> None:
    serve(
        {
            "GET /api/backfills": (403, {"summary": "No."}),
            "GET /v1/teams/1/backfills": (200, {"data": [transfer_backfill()]}),
        }
    )
    assert run(["backfills", "list", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1


def test_a_server_that_is_not_there_is_one_sentence(
    capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFILL_API_KEY", "rf_test")
    assert run(["backfills", "list", "--url", "http://127.0.0.1:1"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("refill: No refill server answers at http://127.0.0.1:1")
    assert len(err.splitlines()) == 1


def test_without_a_key_it_is_not_allowed(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REFILL_API_KEY", raising=False)
    assert run(["backfills", "list"]) == 4
    assert "REFILL_API_KEY" in capsys.readouterr().err


def test_what_is_no_id_is_said_so(serve: Serve, capsys: Any) -> None:
    serve({})
    assert run(["backfills", "show", "yesterday"]) == 1
    assert "'yesterday' is no backfill's id" in capsys.readouterr().err
