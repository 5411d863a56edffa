"""Errors of Python workers as Spark passes them on: the text of a traceback, and nothing else."""

import re

from refill.domain.errors import Misconfigured
from refill.packs.missing import explain

_TRACEBACK = "Traceback (most recent call last):"
_IMPORT = re.compile(r"^(ModuleNotFoundError|ImportError): (.*)$", re.MULTILINE)
_NAMED = re.compile(r"^No module named '([^']+)'")


def missing_in(text: str) -> Misconfigured | None:
    """The sentence for a worker that could not import something: a connector's package, or refill
    itself, when a task is unpickled. None: it failed for another reason."""
    # of a chain, the last is the one that stopped it
    found = _IMPORT.search(text.rpartition(_TRACEBACK)[2]) if _TRACEBACK in text else None
    if found is None:
        return None
    named = _NAMED.match(found[2])
    if named is None:
        return explain(ImportError(found[2]))
    return explain(ModuleNotFoundError(found[2], name=named[1]))


def process_ended(text: str) -> bool:
    """Whether a Python worker went without a word: killed, out of memory, or by our own watch."""
    return "Python worker exited unexpectedly" in text or "worker exited with code" in text
