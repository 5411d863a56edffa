"""The text of a type, as `format_type` prints it, made SQL that can be nothing but a type.

A source says what its types are called, and a source may lie. So its text is never pasted: it is
taken apart into names and modifiers, and put together again with every name quoted.
"""

import re

from refill.connectors.postgres.quoting import identifier
from refill.domain.errors import Invalid

# what is spelled in the grammar itself, and is another type, or none, when it is quoted
_FIELD = "year|month|day|hour|minute|second"
_SPELLED = (
    r"boolean|smallint|integer|bigint|real|double precision|numeric|character varying|character"
    rf"|bit varying|bit|interval(?: (?:{_FIELD})(?: to (?:{_FIELD}))?)?"
)
_ZONED = r"(?P<clock>timestamp|time)(?P<precision>\(\d{1,9}\))? (?P<zone>with|without) time zone"
_NAME = r'(?:[a-z_\u0080-\U0010ffff][a-z0-9_$\u0080-\U0010ffff]*|"(?:[^"\x00]|"")+")'
# numbers, and words as extensions have them: geometry(Point,4326)
_MODIFIERS = r"\((?:-?\d{1,9}|[A-Za-z][A-Za-z0-9_]*)(?:, ?(?:-?\d{1,9}|[A-Za-z][A-Za-z0-9_]*))*\)"
_TYPE = re.compile(
    rf"(?:{_ZONED}|(?:(?P<spelled>{_SPELLED})|(?:(?P<schema>{_NAME})\.)?(?P<name>{_NAME}))"
    rf"(?P<modifiers>{_MODIFIERS})?)(?P<arrays>(?:\[\])*)"
)
# no types: CREATE TABLE takes them for an integer and a sequence
_SERIAL = re.compile(r"(?:small|big)?serial|serial[248]")


def type_sql(text: str) -> str:
    """The same type, safe inside any statement. Invalid when the text is no type's name."""
    found = _TYPE.fullmatch(text)
    if found is None:
        raise Invalid(f"{text[:100]!r} is not the name of a type.")
    arrays = found["arrays"]
    if found["clock"]:
        precision = found["precision"] or ""
        return f"{found['clock']}{precision} {found['zone']} time zone{arrays}"
    modifiers = found["modifiers"] or ""
    if found["spelled"]:
        return f"{found['spelled']}{modifiers}{arrays}"
    name = _unquoted(found["name"])
    if found["schema"]:
        return f"{identifier(_unquoted(found['schema']))}.{identifier(name)}{modifiers}{arrays}"
    if _SERIAL.fullmatch(name):
        raise Invalid(f"{name} is not the name of a type, but of a sequence.")
    return f"{identifier(name)}{modifiers}{arrays}"


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
