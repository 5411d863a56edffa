"""`refill api`: the HTTP server alone, for installations that run workers elsewhere."""

import typer

from refill.bootstrap import make_app, opened_store, prepare_home
from refill.cli.listener import bind, listen, url_of
from refill.cli.local import announced
from refill.cli.options import API, with_settings
from refill.cli.output import announce, print_json
from refill.logs import configure_logs
from refill.settings import Settings


@with_settings(*API)
def api(
    settings: Settings,
    json: bool = typer.Option(False, "--json", help="Say where it listens as JSON."),
) -> None:
    """Run the API without a worker: `refill worker` does the work, here or elsewhere."""
    prepare_home(settings)
    configure_logs(settings.log_format, settings.log_level)
    listener = bind(settings)
    url = url_of(listener)
    with opened_store(settings) as store, announced(settings.home_path, url):
        app = make_app(settings, store)
        if json:
            print_json({"url": url}, one_line=True)
        else:
            announce("refill API at", url)
        listen(app, listener, settings.grace_seconds)
