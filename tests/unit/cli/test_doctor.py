"""What `refill doctor` says of connectors."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from refill.cli.root import run
from refill.connectors.kit import registry
from refill.domain.errors import Misconfigured


def examined(home: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, Mapping[str, Any]]:
    code = run(["doctor", "--home", str(home), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is (code == 0)
    return code, {each["name"]: each for each in found["findings"]}


def test_drivers_that_are_missing_are_listed_with_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    code, found = examined(tmp_path, capsys)
    assert code == 0  # whoever does not use them needs none of them
    missing = {name: each["mend"] for name, each in found.items() if each["ok"] is None}
    assert {name: missing[name] for name in ("Kafka", "Redis stream", "Redis string")} == {
        "Kafka": "pip install 'refill-backfills[kafka]'",
        "Redis stream": "pip install 'refill-backfills[redis]'",
        "Redis string": "pip install 'refill-backfills[redis]'",
    }
    assert "'confluent_kafka' is not installed" in found["Kafka"]["what"]
    assert found["NATS"]["ok"] is True


def test_a_connector_that_cannot_be_loaded_is_one_finding_beside_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Mapping[str, Any]:
        raise Misconfigured("The connector 'pigeon' cannot be loaded.")

    monkeypatch.setattr(registry, "load_connectors", broken)
    code, found = examined(tmp_path, capsys)
    assert code == 1
    assert found["Connectors"]["ok"] is False
    assert found["Connectors"]["what"] == "The connector 'pigeon' cannot be loaded."
    assert found["Store"]["ok"] is True
