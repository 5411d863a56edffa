"""What `refill doctor` says of the databases that are read: whether they answer, and whether the
role that reads could write."""

from refill.bootstrap import opened_store
from refill.cli.findings import Finding
from refill.connectors.kit.contract import Connector, Context
from refill.domain.errors import RefillError
from refill.domain.pipeline import Database
from refill.settings import Settings

_READ_ONLY = "give it a role that only reads: GRANT pg_read_all_data TO …, and nothing else"


def examine_sources(settings: Settings) -> list[Finding]:
    """One finding per database of any team; a store that is away was said already."""
    from refill.connectors.kit.registry import load_connectors

    try:
        connectors = load_connectors()
        with opened_store(settings) as store:
            found = [each for team in store.list_teams() for each in store.list_databases(team.id)]
    except RefillError:
        return []
    return [
        _examine(connectors[database.type], database, _context(settings, database))
        for database in found
        if database.type in connectors
    ]


def _context(settings: Settings, database: Database) -> Context:
    return Context(
        team_id=database.team_id,
        files_root=str(settings.files_path),
        allow_private_hosts=settings.allow_private_hosts,
        allowed_networks=settings.allowed_networks,
        refused_networks=settings.refused_networks,
    )


def _examine(connector: Connector, database: Database, context: Context) -> Finding:
    name = f"Source {database.name}"
    if connector.open_source is None:
        return Finding(name=name, ok=None, what=f"{connector.title} cannot be read from")
    options = connector.options_model.model_validate(dict(database.options))
    source = connector.open_source(options, context)
    try:
        concerns = source.concerns()
    except RefillError as error:
        # whether it should be up is not for us to know
        return Finding(name=name, ok=None, what=error.message)
    finally:
        source.close()
    if concerns:
        return Finding(name=name, ok=None, what=", ".join(concerns), mend=_READ_ONLY)
    return Finding(name=name, ok=True, what="its role can read, and not write")
