"""Settings as options: each command names those it uses, and receives them as one Settings."""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from pydantic import SecretStr, ValidationError
from pydantic_settings import BaseSettings

from refill.cli.output import Stopped
from refill.settings import ClientSettings, Settings

STORE = ("home", "store_url", "secret_key")
NETWORK = ("allow_private_hosts", "allowed_networks", "refused_networks")
LOGS = ("log_format", "log_level")
API = (
    *STORE,
    "host",
    "port",
    "files_root",
    "rate_limit_per_hour",
    "wrong_keys_per_hour",
    "body_seconds",
    "max_range_days",
    "body_limit_bytes",
    "probe_seconds",
    "probes_per_team",
    *NETWORK,
    *LOGS,
)
SPARK = ("spark_master", "spark_remote", "spark_driver_memory", "python_memory")
WORKER = (
    *STORE,
    "files_root",
    *SPARK,
    "slots",
    "max_row_bytes",
    "team_weights",
    "lease_seconds",
    "max_failures",
    "stall_seconds",
    "retention_days",
    *NETWORK,
    "smtp_url",
    "mail_from",
    "stalled_minutes",
    "grace_seconds",
    *LOGS,
)
SERVE = tuple(dict.fromkeys((*API, *WORKER)))

Command = Callable[..., Any]

_PANEL = "Settings (in the environment too: --some-name is REFILL_SOME_NAME)"


def with_settings(*names: str) -> Callable[[Command], Command]:
    """The command's parameter `settings` becomes one option per name."""
    return _with_options("settings", Settings, names)


def with_client(command: Command) -> Command:
    """The command's parameter `client` becomes --url, --api-key, --team and --home."""

    @wraps(command)
    def called(**given: Any) -> Any:
        from refill.cli.client import connect

        home = given.pop("home")
        with connect(given.pop("client_settings"), home) as client:
            return command(client=client, **given)

    home = inspect.Parameter(
        "home",
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[
            Path | None,
            typer.Option("--home", help="Speak to the server that runs on this home, keyless."),
        ],
    )
    settings = inspect.Parameter("client_settings", inspect.Parameter.KEYWORD_ONLY)
    _sign(called, [*_parameters_but(command, "client"), home, settings])
    return _with_options("client_settings", ClientSettings, tuple(ClientSettings.model_fields))(
        called
    )


def read_settings(model: type[BaseSettings], given: dict[str, Any]) -> Any:
    """Options given win over the environment; what is wrong is named as the user knows it."""
    try:
        return model(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = str(first["loc"][0])
        raise Stopped(
            f"The setting {flag(name)} (REFILL_{name.upper()}) is not usable: {first['msg']}."
        ) from None


def flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _with_options(
    parameter: str, model: type[BaseSettings], names: tuple[str, ...]
) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        @wraps(command)
        def called(**given: Any) -> Any:
            settings = read_settings(model, {name: given.pop(name) for name in names})
            return command(**{parameter: settings}, **given)

        options = [_option(model, name) for name in names]
        _sign(called, [*_parameters_but(command, parameter), *options])
        return called

    return decorate


def _option(model: type[BaseSettings], name: str) -> inspect.Parameter:
    field = model.model_fields[name]
    kind = next((part for part in get_args(field.annotation) if part is not type(None)), None)
    declared = kind if isinstance(kind, type) else field.annotation
    plain = declared if declared in (int, float, bool, Path) else str
    info = typer.Option(
        flag(name),
        help=f"{field.description}{_shown_default(field.default)}".replace("[", r"\["),
        show_default=False,
        metavar=None if plain is bool else name.rsplit("_", 1)[-1].upper(),
        rich_help_panel=_PANEL,
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[plain | None, info],
    )


def _shown_default(value: object) -> str:
    if value in (None, "") or isinstance(value, SecretStr):
        return ""
    return f" (default {value})" if not isinstance(value, bool) else ""


def _parameters_but(command: Command, name: str) -> list[inspect.Parameter]:
    parameters = inspect.signature(command, eval_str=True).parameters.values()
    return [each for each in parameters if each.name != name]


def _sign(command: Command, parameters: list[inspect.Parameter]) -> None:
    """typer reads a command's signature: give it the one with the options in it."""
    ordered = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        else each
        for each in parameters
    ]
    command.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    command.__annotations__ = {}
