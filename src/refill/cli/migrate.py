"""`refill migrate`: brings the metadata store to the newest schema."""

from refill.bootstrap import opened_store
from refill.cli.options import STORE, with_settings
from refill.cli.output import Json, print_json, print_record
from refill.settings import Settings


@with_settings(*STORE)
def migrate(settings: Settings, json: Json = False) -> None:
    """Bring the metadata store to the newest schema. `serve`, `api` and `worker` do so too."""
    with opened_store(settings) as store:
        state = store.check()
    if json:
        print_json(state)
    else:
        print_record(state)
