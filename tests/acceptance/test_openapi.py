"""The OpenAPI document is true to the answers: schemathesis asks every operation what it may."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.config import SchemathesisConfig

from refill.api.app import create_app
from refill.bootstrap import open_store
from refill.connectors.kit.registry import load_connectors
from refill.domain.access import Scope
from refill.service import Service
from refill.settings import Settings

ROOT = Path(__file__).parents[2]


def make_service(store: Any, config: Settings) -> Service:
    return Service(store=store, connectors=load_connectors(), settings=config)


# the document needs no store: the tests are collected without one
app = create_app(make_service(None, Settings()), Settings())
schema = schemathesis.openapi.from_asgi(
    "/openapi.json", app, config=SchemathesisConfig.from_path(ROOT / "schemathesis.toml")
)


@pytest.fixture(scope="module", autouse=True)
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The app over a real store."""
    config = Settings(home=tmp_path_factory.mktemp("home"))
    store = open_store(config)
    service = make_service(store, config)
    for name, part in vars(create_app(service, config).state)["_state"].items():
        setattr(app.state, name, part)
    yield
    store.close()


@schema.parametrize()
@settings(
    max_examples=2,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_as_the_document_says(case: schemathesis.Case) -> None:
    case.call_and_validate(headers={"Authorization": f"Bearer {token_for(case.operation.label)}"})


@cache
def token_for(operation: str) -> str:
    """A key for each operation: the hour's allowance is not what is asked about."""
    access = app.state.service.access
    token: str = access.mint_key(team_id=1, user_id=1, scopes=[Scope.ALL]).token
    return token
