"""Every setting is an option of the commands that use it, and stands in the reference."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer.main

from refill.cli import options
from refill.cli.output import Stopped
from refill.cli.root import make_app, run
from refill.domain import errors
from refill.settings import ClientSettings, Settings

DOCS = Path(__file__).parents[3] / "docs" / "reference"
COMMANDS: Any = typer.main.get_command(make_app())


def option_names(*path: str) -> set[str]:
    command = COMMANDS
    for name in path:
        command = command.commands[name]
    return {name for parameter in command.params for name in parameter.opts}


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_an_option_of_serve(name: str) -> None:
    assert options.flag(name) in option_names("serve")


@pytest.mark.parametrize(
    ("path", "names"),
    [
        (("api",), options.API),
        (("worker",), options.WORKER),
        (("migrate",), options.STORE),
        (("doctor",), (*options.STORE, "files_root", *options.SPARK)),
        (("keys", "create"), options.STORE),
        (("keys", "list"), options.STORE),
        (("keys", "revoke"), options.STORE),
        (("teams", "create"), options.STORE),
        (("users", "create"), options.STORE),
    ],
)
def test_a_command_takes_the_settings_it_uses(path: tuple[str, ...], names: set[str]) -> None:
    assert {options.flag(name) for name in names} <= option_names(*path)


def test_api_and_worker_together_use_every_setting() -> None:
    assert set(options.SERVE) == set(Settings.model_fields)


@pytest.mark.parametrize("command", COMMANDS.commands["backfills"].commands)
def test_every_backfills_command_can_be_pointed_at_a_server(command: str) -> None:
    wanted = {options.flag(name) for name in ClientSettings.model_fields} | {"--home", "--json"}
    assert wanted <= option_names("backfills", command)


@pytest.mark.parametrize("name", [*Settings.model_fields, *ClientSettings.model_fields])
def test_every_setting_is_in_the_reference(name: str) -> None:
    text = (DOCS / "settings.md").read_text()
    assert f"`REFILL_{name.upper()}` | `{options.flag(name)}` |" in text


def test_the_reference_names_no_setting_that_is_gone() -> None:
    known = {f"REFILL_{n.upper()}" for n in (*Settings.model_fields, *ClientSettings.model_fields)}
    named = set(re.findall(r"REFILL_[A-Z_]+", (DOCS / "settings.md").read_text()))
    assert named <= known


def error_codes() -> set[str]:
    classes = [errors.RefillError]
    for each in classes:
        classes.extend(each.__subclasses__())
    return {each.code for each in classes if each.__module__ == errors.__name__}


def test_every_error_code_is_in_the_reference_and_no_other() -> None:
    listed = re.findall(r"^\| `([a-z_]+)` \|", (DOCS / "errors.md").read_text(), re.MULTILINE)
    assert set(listed) == error_codes()


def test_every_command_is_in_the_reference() -> None:
    text = (DOCS / "cli.md").read_text()
    for name, command in COMMANDS.commands.items():
        for path in [f"{name} {sub}" for sub in getattr(command, "commands", [])] or [name]:
            assert f"`refill {path}" in text


def test_an_option_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFILL_PORT", "1000")
    monkeypatch.setenv("REFILL_SLOTS", "3")
    settings = options.read_settings(Settings, {"port": 2000, "slots": None})
    assert (settings.port, settings.slots) == (2000, 3)


def test_a_setting_out_of_range_is_named_as_the_user_knows_it() -> None:
    with pytest.raises(Stopped, match=r"--rate-limit-per-hour \(REFILL_RATE_LIMIT_PER_HOUR\)"):
        options.read_settings(Settings, {"rate_limit_per_hour": -1})


def test_a_usage_error_is_one_sentence_and_not_the_code_of_cancelled(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["serve", "--no-such-option"]) == 1
    said = capsys.readouterr().err
    assert "--no-such-option" in said
    assert "refill serve --help" in said
