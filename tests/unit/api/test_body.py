"""Bodies: read strictly, told apart by what is wrong with them."""

from typing import Annotated

import pytest
from pydantic import Field

from refill.api.body import Body, parse_body
from refill.domain.errors import Invalid, Malformed


class Example(Body):
    name: str
    count: Annotated[int, Field(ge=1)] = 1
    inner: "Inner | None" = None


class Inner(Body):
    flag: bool


def test_an_absent_body_is_an_empty_object() -> None:
    with pytest.raises(Malformed) as caught:
        parse_body(Example, b"")
    assert caught.value.fields == {"name": ["is required"]}


def test_a_known_body_is_read() -> None:
    body = parse_body(Example, b'{"name": "a", "count": 2, "inner": {"flag": true}}')
    assert body == Example(name="a", count=2, inner=Inner(flag=True))


@pytest.mark.parametrize("data", [b"{", b"\x00", b'{"name": Infinity}', b'{"name": "\xff"}'])
def test_what_is_not_json_has_no_fields(data: bytes) -> None:
    with pytest.raises(Malformed) as caught:
        parse_body(Example, data)
    assert caught.value.fields == {}


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b'{"name": "a", "Table": 1}', "Table"),
        (b'{"name": "a", "int": 1}', "int"),
        (b'{"name": "a", "a[0]": 1}', "a[0]"),
        (b'{"name": "a", "inner": {"flag": true, "Flag": 1}}', "inner.Flag"),
    ],
)
def test_an_unknown_key_is_named_as_it_was_written(data: bytes, named: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_body(Example, data)
    assert caught.value.fields == {named: ["is not a known key"]}


def test_unknown_keys_alone_are_invalid_rather_than_malformed() -> None:
    with pytest.raises(Invalid) as caught:
        parse_body(Example, b'{"name": "a", "inner": {"flag": true, "other": 1}}')
    assert not isinstance(caught.value, Malformed)
    assert caught.value.fields == {"inner.other": ["is not a known key"]}


@pytest.mark.parametrize("data", [b'{"name": "a", "count": "2"}', b'{"name": "a", "count": 1.0}'])
def test_a_text_is_no_number(data: bytes) -> None:
    with pytest.raises(Malformed) as caught:
        parse_body(Example, data)
    assert list(caught.value.fields) == ["count"]


def test_a_nul_in_a_text_is_refused_and_a_backslash_u0000_is_not() -> None:
    with pytest.raises(Invalid, match="NUL"):
        parse_body(Example, b'{"name": "a\\u0000"}')
    assert parse_body(Example, b'{"name": "a\\\\u0000"}').name == "a\\u0000"
