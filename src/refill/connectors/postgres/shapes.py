"""What the parts of a type are that PostgreSQL prints as one text: arrays, composites, hstore.

Frozen with the column, so that a task can make JSON of the text without a look at the catalogue.
`json_form/nested.py` reads it.
"""

from collections.abc import Iterable
from typing import Any

# every type that is reached from some: elements, fields, what is under a domain
_REACHED = """
WITH RECURSIVE reached(oid) AS (
    SELECT unnest(%(oids)s::oid[])
    UNION
    SELECT part.oid FROM reached r JOIN pg_catalog.pg_type t ON t.oid = r.oid
    CROSS JOIN LATERAL (
        SELECT t.typbasetype WHERE t.typtype = 'd'
        UNION ALL
        SELECT t.typelem WHERE t.typinput = 'pg_catalog.array_in'::regproc
        UNION ALL
        SELECT a.atttypid FROM pg_catalog.pg_attribute a
        WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
    ) AS part(oid)
)
SELECT t.oid, t.typtype::text, t.typname, e.extname,
       CASE t.typtype WHEN 'd' THEN t.typbasetype END,
       CASE WHEN t.typinput = 'pg_catalog.array_in'::regproc THEN t.typelem END,
       CASE WHEN t.typinput = 'pg_catalog.array_in'::regproc THEN t.typdelim::text END,
       (SELECT json_agg(json_build_array(a.attname, a.atttypid::int8) ORDER BY a.attnum)
        FROM pg_catalog.pg_attribute a
        WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped)
FROM reached r JOIN pg_catalog.pg_type t ON t.oid = r.oid
LEFT JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_type'::regclass
     AND d.objid = t.oid AND d.refclassid = 'pg_catalog.pg_extension'::regclass
     AND d.deptype = 'e'
LEFT JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
"""
_LEAVES = {
    16: "boolean",
    **dict.fromkeys((20, 21, 23, 26), "integer"),
    **dict.fromkeys((700, 701), "float"),
    1700: "decimal",
    **dict.fromkeys((114, 3802), "json"),
    **dict.fromkeys((1114, 1184), "moment"),
    1186: "interval",
}
_EXTENSIONS = {("hstore", "hstore"): "hstore", ("vector", "vector"): "vector"}
_TEXT = "text"
# alone in a column, all other leaves have a form of their own already
_SHAPED_ALONE = frozenset({"interval", "hstore", "vector"})
# most columns are of these, and have no parts: nothing to ask for
_PLAIN = {oid for oid, leaf in _LEAVES.items() if leaf not in _SHAPED_ALONE}
_PLAIN |= {17, 19, 25, 1042, 1043, 1082, 1083, 2950}
_DEEPEST = 20  # composites within composites


def read_shapes(connection: Any, oids: Iterable[int]) -> dict[int, Any]:
    """The shapes of those types that have one."""
    wanted = sorted(set(oids) - _PLAIN)
    if not wanted:
        return {}
    rows = connection.execute(_REACHED, {"oids": wanted}).fetchall()
    types = {row[0]: row for row in rows}
    found = {oid: _shape(oid, types) for oid in wanted}
    return {
        oid: shape
        for oid, shape in found.items()
        if not isinstance(shape, str) or shape in _SHAPED_ALONE
    }


def _shape(oid: int, types: dict[int, tuple[Any, ...]], depth: int = 0) -> Any:
    if oid not in types or depth > _DEEPEST:
        return _TEXT
    _, kind, name, extension, base, element, delimiter, fields = types[oid]
    if base is not None:
        return _shape(base, types, depth)
    if element is not None:
        return {"array": _shape(element, types, depth), "by": delimiter}
    if kind == "c":
        return {"fields": [[field, _shape(of, types, depth + 1)] for field, of in fields or ()]}
    return _EXTENSIONS.get((extension, name)) or _LEAVES.get(oid, _TEXT)
