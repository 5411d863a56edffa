"""The composition root: settings in, wired objects out.

Spark is imported where the worker is made and nowhere before: the API has no JVM and starts fast.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from refill.domain.errors import Misconfigured
from refill.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

    from refill.service import Service
    from refill.store.port import Store
    from refill.worker import Worker


def prepare_home(settings: Settings) -> None:
    """The home directory, made when it is not there; Misconfigured when it cannot be written."""
    for what, path in (("home", settings.home_path), ("files root", settings.files_path)):
        option = "--home" if what == "home" else "--files-root"
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700 if what == "home" else 0o755)
            with tempfile.TemporaryFile(dir=path):
                pass
        except OSError as error:
            reason = os.strerror(error.errno).lower() if error.errno else str(error)
            raise Misconfigured(
                f"The {what} directory {path} cannot be written ({reason}); make it writable, "
                f"or choose another with {option}."
            ) from error


def open_store(settings: Settings) -> "Store":
    """The metadata store with its secrets readable, at the newest schema."""
    prepare_home(settings)
    from refill.store.cipher import load_cipher
    from refill.store.open import open_store as open_

    url = settings.store_url.get_secret_value() if settings.store_url else None
    cipher = load_cipher(settings.secret_key, settings.home_path)
    store = open_(url, home=settings.home_path, cipher=cipher)
    store.migrate()
    return store


@contextmanager
def opened_store(settings: Settings) -> "Iterator[Store]":
    store = open_store(settings)
    try:
        yield store
    finally:
        store.close()


def make_service(settings: Settings, store: "Store") -> "Service":
    from refill.connectors.kit.registry import load_connectors
    from refill.service import Service

    return Service(store=store, connectors=load_connectors(), settings=settings)


def make_app(settings: Settings, store: "Store") -> "FastAPI":
    from refill.api.app import create_app

    return create_app(make_service(settings, store), settings)


def make_worker(settings: Settings, store: "Store") -> "Worker":
    from refill.connectors.kit.registry import load_connectors
    from refill.notices.courier import Courier
    from refill.spark.engine import SparkEngine
    from refill.worker import Worker

    connectors = load_connectors()
    service = make_service(settings, store)

    def fire_schedules() -> None:
        # by the store's clock: a worker whose own is wrong fires nothing early
        service.schedules.fire_due(store.now())

    return Worker(
        store=store,
        engine=SparkEngine(settings, connectors),
        connectors=connectors,
        settings=settings,
        fire_schedules=fire_schedules,
        notify=Courier(store, settings).tick,
    )
