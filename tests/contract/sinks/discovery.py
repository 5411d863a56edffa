"""Every bed there is."""

import importlib
import pkgutil

from tests.contract.sinks import beds
from tests.contract.sinks.bed import SinkBed


def find_beds() -> list[type[SinkBed]]:
    found: list[type[SinkBed]] = []
    for module in pkgutil.iter_modules(beds.__path__):
        loaded = importlib.import_module(f"{beds.__name__}.{module.name}")
        for thing in vars(loaded).values():
            concrete = isinstance(thing, type) and issubclass(thing, SinkBed)
            if concrete and "name" in vars(thing) and thing.__module__ == loaded.__name__:
                found.append(thing)
    return sorted(found, key=lambda bed: bed.name)
