"""Options of connectors: what is kept, frozen and shown."""

from typing import ClassVar

import pytest
from pydantic import SecretStr, ValidationError

from refill.connectors.kit.contract import Connector, Options
from refill.connectors.kit.registry import load_connectors
from refill.domain.errors import Invalid
from refill.service.options import MASK, changed, frozen, masked, parse_options, reveal


class PigeonOptions(Options):
    live: ClassVar[frozenset[str]] = frozenset({"loft", "password"})

    loft: str
    password: SecretStr | None = None
    message: str = "coo"


PIGEON = Connector(type="pigeon", title="Pigeons", options_model=PigeonOptions, is_sink=True)


def test_secrets_are_revealed_for_the_store_and_masked_for_answers() -> None:
    options = reveal(parse_options(PIGEON, {"loft": "north", "password": "corn"}))
    assert options == {"loft": "north", "password": "corn", "message": "coo"}
    assert masked(PIGEON, options) == {"loft": "north", "password": MASK, "message": "coo"}
    assert masked(None, options) == {}


def test_a_mask_sent_back_keeps_the_secret() -> None:
    old = {"loft": "north", "password": "corn"}
    assert changed(old, {"password": MASK, "loft": "south"}) == {
        "loft": "south",
        "password": "corn",
    }


def test_a_mask_inside_a_mapping_keeps_that_secret() -> None:
    old = {"headers": {"Authorization": "Bearer x", "House": "atreides"}}
    sent = {"headers": {"Authorization": MASK, "Planet": "arrakis"}}
    assert changed(old, sent) == {
        "headers": {"Authorization": "Bearer x", "Planet": "arrakis"},
    }


def test_how_to_reach_the_system_is_not_frozen() -> None:
    options = {"loft": "north", "password": "corn", "message": "coo"}
    assert frozen(PIGEON, options) == {"message": "coo"}


def test_problems_are_told_by_field() -> None:
    with pytest.raises(Invalid) as caught:
        parse_options(PIGEON, {"colour": "grey"}, "destination.")
    assert caught.value.fields == {
        "destination.loft": ["is required"],
        "destination.colour": ["is not a known key"],
    }


def test_no_value_gets_into_the_text_of_an_error() -> None:
    for connector in load_connectors().values():
        with pytest.raises(ValidationError) as caught:
            connector.options_model.model_validate({"nowhere": "hush-hush"})
        assert "hush-hush" not in str(caught.value)
