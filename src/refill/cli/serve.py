"""`refill serve`: the API, and a worker beside it in a process of its own."""

from typing import TYPE_CHECKING

from refill.bootstrap import make_app, opened_store, prepare_home
from refill.cli.listener import bind, listen, url_of
from refill.cli.local import announced
from refill.cli.options import SERVE, with_settings
from refill.cli.output import Json, announce, print_json
from refill.cli.supervisor import Supervisor, spawn_worker
from refill.clock import system_clock
from refill.domain.access import Scope
from refill.logs import configure_logs
from refill.settings import Settings

if TYPE_CHECKING:
    from refill.store.port import Store


@with_settings(*SERVE)
def serve(settings: Settings, json: Json = False) -> None:
    """Run refill on this machine. On an empty home it prints a first admin key, once."""
    prepare_home(settings)
    _check_java(settings)
    configure_logs(settings.log_format, settings.log_level)
    listener = bind(settings)
    url = url_of(listener)
    with opened_store(settings) as store, announced(settings.home_path, url):
        app = make_app(settings, store)
        key = first_key(store)  # once nothing can fail any more: it is shown only once
        supervisor = Supervisor(
            lambda: spawn_worker(settings), grace_seconds=settings.grace_seconds
        )
        _greet(url, key, json)
        try:
            # the worker once the API answers: side by side they would both be slow to start
            listen(app, listener, settings.grace_seconds, on_answering=supervisor.start)
        finally:
            supervisor.stop()


def first_key(store: "Store") -> str | None:
    """A key for everything, when there was never one: somebody must be able to begin."""
    from refill.service.access import Access

    if store.list_keys():
        return None
    owner = store.list_users(1)[0]
    access = Access(store=store, clock=system_clock)
    return access.mint_key(team_id=1, user_id=owner.id, scopes=[Scope.ALL]).token


def _check_java(settings: Settings) -> None:
    """Said now, in one sentence, rather than by a worker that cannot start, again and again."""
    if settings.spark_remote is None:
        from refill.spark.java import find_java

        find_java()


def _greet(url: str, key: str | None, json: bool) -> None:
    if json:
        print_json({"url": url, "key": key}, one_line=True)
        return
    announce("refill at", url)
    if key:
        announce("first admin key, shown once:", key)
