"""What errors become on their way to the store."""

import sys
from pathlib import Path

import pytest

from refill.connectors.kit.contract import Context
from refill.connectors.kit.registry import load_connectors
from refill.domain.errors import Misconfigured, SinkRefused, SourceUnavailable
from refill.packs.faults import fault_of
from refill.packs.run import run_pack
from tests.integration.spark.assignments import make_assignment, make_ticket
from tests.sheets import SHEETS


def failed_import(statement: str) -> ImportError:
    with pytest.raises(ImportError) as caught:
        exec(statement)
    return caught.value


def test_a_missing_module_is_terminal_and_named() -> None:
    fault = fault_of(failed_import("import a_driver_of_nobody.inner"))
    assert (fault.code, fault.transient) == ("misconfigured", False)
    assert "'a_driver_of_nobody' is not installed" in fault.message
    assert "install the package that brings it" in fault.message


def test_a_missing_driver_names_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pika", None)
    fault = fault_of(failed_import("import pika.exceptions"))
    assert not fault.transient
    assert "pip install 'refill-backfills[rabbitmq]'" in fault.message


def test_a_module_without_what_is_wanted_of_it_is_terminal() -> None:
    fault = fault_of(failed_import("from json import no_such_thing"))
    assert (fault.code, fault.transient) == ("misconfigured", False)
    assert "'json' cannot be imported (cannot import name 'no_such_thing'" in fault.message
    nameless = fault_of(ImportError("libgone.so: cannot open shared object file"))
    assert (nameless.code, nameless.transient) == ("misconfigured", False)
    assert "libgone.so" in nameless.message


def test_an_error_that_was_raised_from_a_missing_module_is_terminal_too() -> None:
    taken_for_passing = SourceUnavailable("Could not read public.orders.")
    taken_for_passing.__cause__ = failed_import("import a_driver_of_nobody")
    assert fault_of(taken_for_passing).code == "misconfigured"
    refused = SinkRefused("No.")
    refused.__cause__ = failed_import("import a_driver_of_nobody")
    assert fault_of(refused).message == "No."


def test_what_is_unknown_may_pass() -> None:
    fault = fault_of(KeyError("secret detail"))
    assert (fault.code, fault.transient) == ("unexpected", True)
    assert "secret" not in fault.message


@pytest.mark.parametrize(
    ("type_name", "options"),
    [
        ("kafka", {"hosts": "127.0.0.1:1", "topic": "orders"}),
        ("nats", {"host": "127.0.0.1"}),
        ("rabbitmq", {"host": "127.0.0.1", "exchange": "orders"}),
        ("redis_stream", {"host": "127.0.0.1", "stream_key": "orders"}),
        ("redis_string", {"host": "127.0.0.1"}),
    ],
)
def test_a_slice_without_its_sinks_driver_fails_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, type_name: str, options: dict[str, str]
) -> None:
    sink = load_connectors()[type_name]
    assert sink.driver is not None
    for module in [*sys.modules]:
        if module.partition(".")[0] == sink.driver:
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, sink.driver, None)
    assignment = make_assignment(
        tmp_path, [make_ticket(1)], sink_type=type_name, sink_options=options
    )
    (receipt,) = run_pack(assignment, SHEETS, sink)
    assert receipt.fault is not None
    assert (receipt.fault.code, receipt.fault.transient) == ("misconfigured", False)
    assert f"pip install 'refill-backfills[{sink.extra}]'" in receipt.fault.message
    assert sink.open_sink is not None
    with pytest.raises(Misconfigured):
        sink.open_sink(options, Context(team_id=1, files_root="/nowhere"))
