"""Ids: UUIDv7 for new things, and those that a repeated request finds again."""

import os
import time
import uuid

_NAMESPACE = uuid.UUID("7d9c5d9e-6a4b-5f6e-9a55-0c2c5a4f7376")


def new_uid() -> str:
    """A UUIDv7: it sorts by the time it was made at."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds & (1 << 48) - 1) << 80 | int.from_bytes(os.urandom(10))
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))


def repeatable_uid(team_id: int, route: str, key: str) -> str:
    """The id that a request with this Idempotency-Key gives to what it makes, every time: after a
    crash between the commit and the answer, the repeated request finds its own work."""
    return str(uuid.uuid5(_NAMESPACE, f"{team_id}\n{route}\n{key}"))


def is_repeatable(uid: str) -> bool:
    """Made by `repeatable_uid`: it may have been used before."""
    return uuid.UUID(uid).version == 5


def is_uid(text: str) -> bool:
    """Written as a UUID is written, in lower or upper case."""
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False
