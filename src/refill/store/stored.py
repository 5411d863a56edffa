"""The objects that connectors refer to, by their kind: the one place that knows where each is."""

from refill.domain.stored import Stored, StoredObject
from refill.store.port import PipelineStore


def find_stored(store: PipelineStore, kind: Stored, team_id: int, id_or_name: str) -> StoredObject:
    """NotFound when the team has none of that id or name."""
    return {Stored.HTTP_ENDPOINT: store.get_endpoint}[kind](team_id, id_or_name)


def list_stored(store: PipelineStore, kind: Stored, team_id: int) -> tuple[StoredObject, ...]:
    return {Stored.HTTP_ENDPOINT: store.list_endpoints}[kind](team_id)
