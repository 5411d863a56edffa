"""What there is to read: relations, their columns and the key that they can be sliced by."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from refill.connectors.postgres.native import NativeType, make_column
from refill.connectors.postgres.shapes import read_shapes
from refill.domain.table import Column, Keyless, Table, TableKind

# "Not ours to show": PostgreSQL's own schemas, other sessions' temporary tables
_READABLE = """
    c.relkind IN ('r', 'p', 'v', 'm', 'f')
    AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
    AND n.nspname NOT LIKE 'pg\\_temp\\_%%' AND n.nspname NOT LIKE 'pg\\_toast\\_temp\\_%%'
    AND has_schema_privilege(n.oid, 'USAGE')
    AND has_any_column_privilege(c.oid, 'SELECT')
"""

_RELATIONS = f"""
SELECT c.oid, n.nspname, c.relname, c.relkind::text
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE {_READABLE}
"""

# how a type looks underneath, for a set of type oids; domains lead to domains
_TYPES = """
WITH RECURSIVE under(oid, base) AS (
    SELECT t.oid, t.oid FROM pg_catalog.pg_type t WHERE t.oid = ANY(%(oids)s::oid[])
    UNION ALL
    SELECT u.oid, t.typbasetype FROM under u JOIN pg_catalog.pg_type t ON t.oid = u.base
    WHERE t.typtype = 'd'
)
SELECT t.oid, t.typtype::text, nullif(b.oid, t.oid),
       CASE WHEN b.typcategory = 'A' AND b.typelem <> 0 THEN b.typelem END,
       e.extname
FROM under u
JOIN pg_catalog.pg_type t ON t.oid = u.oid
JOIN pg_catalog.pg_type b ON b.oid = u.base AND b.typtype <> 'd'
LEFT JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_type'::regclass
     AND d.objid = t.oid AND d.refclassid = 'pg_catalog.pg_extension'::regclass
     AND d.deptype = 'e'
LEFT JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
"""

_COLUMNS = """
SELECT a.attrelid, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.atttypid,
       a.atttypmod, a.attnotnull, CASE WHEN a.attcollation <> 0 THEN
           quote_ident(cn.nspname) || '.' || quote_ident(co.collname) END
FROM pg_catalog.pg_attribute a
LEFT JOIN pg_catalog.pg_collation co ON co.oid = a.attcollation
LEFT JOIN pg_catalog.pg_namespace cn ON cn.oid = co.collnamespace
WHERE a.attrelid = ANY(%(oids)s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
  AND has_column_privilege(a.attrelid, a.attnum, 'SELECT')
ORDER BY a.attrelid, a.attnum
"""

# Primary key first, else a unique index that is valid, whole, made of plain columns that are all
# NOT NULL; of several the narrowest.
_KEYS = """
SELECT i.indrelid, i.indisprimary,
       array_agg(a.attname::text ORDER BY k.position)
FROM pg_catalog.pg_index i
CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, position)
JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE i.indrelid = ANY(%(oids)s::oid[]) AND i.indisunique AND i.indisvalid
  AND i.indpred IS NULL AND i.indexprs IS NULL AND k.position <= i.indnkeyatts
GROUP BY i.indexrelid, i.indrelid, i.indisprimary, i.indnkeyatts
HAVING bool_and(a.attnotnull)
ORDER BY i.indrelid, i.indisprimary DESC, i.indnkeyatts, i.indexrelid
"""

# Where a key or a NOT NULL does not bind every row that is read: what a foreign server holds only
# declares them, and a table that others inherit from enforces them for its own rows alone. Below
# a partitioned table, one such partition is enough.
_UNENFORCED = """
WITH RECURSIVE below(top, oid) AS (
    SELECT c.oid, c.oid FROM pg_catalog.pg_class c WHERE c.oid = ANY(%(oids)s::oid[])
    UNION
    SELECT b.top, i.inhrelid FROM below b JOIN pg_catalog.pg_inherits i ON i.inhparent = b.oid
)
SELECT DISTINCT b.top FROM below b JOIN pg_catalog.pg_class c ON c.oid = b.oid
WHERE c.relkind = 'f' OR (c.relkind = 'r' AND EXISTS (
    SELECT FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid
))
"""

_PARENTS = """
WITH RECURSIVE up(oid, parent) AS (
    SELECT i.inhrelid, i.inhparent FROM pg_catalog.pg_inherits i
    WHERE i.inhrelid = ANY(%(oids)s::oid[])
    UNION
    SELECT u.oid, i.inhparent FROM up u JOIN pg_catalog.pg_inherits i ON i.inhrelid = u.parent
)
SELECT u.oid, array_agg(n.nspname || '.' || c.relname ORDER BY n.nspname, c.relname)
FROM up u JOIN pg_catalog.pg_class c ON c.oid = u.parent
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
GROUP BY u.oid
"""

# what a role can do beside reading; a superuser has every privilege
_MAY = """
SELECT
    (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user),
    EXISTS (
        SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
        AND has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
    ),
    EXISTS (
        SELECT FROM pg_catalog.pg_namespace
        WHERE nspname !~ '^pg_' AND has_schema_privilege(oid, 'CREATE')
    )
"""

_KINDS = {
    "r": TableKind.TABLE,
    "p": TableKind.TABLE,  # partitioned
    "v": TableKind.VIEW,
    "m": TableKind.MATERIALIZED_VIEW,
    "f": TableKind.FOREIGN_TABLE,
}


def read_catalogue(connection: Any) -> tuple[Table, ...]:
    """Every relation that may be read, in the order of their names. Partitions are left out: the
    partitioned table has their rows, and who wants one alone can name it."""
    relations = connection.execute(
        _RELATIONS + "AND NOT c.relispartition ORDER BY n.nspname, c.relname"
    ).fetchall()
    return _describe(connection, relations)


def role_concerns(connection: Any) -> tuple[str, ...]:
    """What the role may do that reading does not need."""
    superuser, writes, creates = connection.execute(_MAY).fetchone()
    if superuser:
        return ("its role is a superuser",)
    found = ((writes, "its role may write tables"), (creates, "its role may create tables"))
    return tuple(text for holds, text in found if holds)


def read_table(connection: Any, schema: str, name: str) -> Table | None:
    relations = connection.execute(
        _RELATIONS + "AND n.nspname = %(schema)s AND c.relname = %(name)s",
        {"schema": schema, "name": name},
    ).fetchall()
    return next(iter(_describe(connection, relations)), None)


def describe_types(connection: Any, columns: Iterable[tuple[str, int, int]]) -> tuple[Column, ...]:
    """Columns for (name, type oid, typmod), as a query's description has them."""
    wanted = list(columns)
    types = _types(connection, {oid for _, oid, _ in wanted})
    printed = connection.execute(
        "SELECT array_agg(pg_catalog.format_type(oid, typmod) ORDER BY position) "
        "FROM unnest(%s::oid[], %s::int4[]) WITH ORDINALITY AS t(oid, typmod, position)",
        ([oid for _, oid, _ in wanted], [typmod for _, _, typmod in wanted]),
    ).fetchone()[0]
    return tuple(
        make_column(name, text, NativeType(oid=oid, typmod=typmod, **types[oid]))
        for (name, oid, typmod), text in zip(wanted, printed or [], strict=True)
    )


def _describe(connection: Any, relations: Sequence[tuple[Any, ...]]) -> tuple[Table, ...]:
    oids = {"oids": [relation[0] for relation in relations]}
    if not relations:
        return ()
    rows = connection.execute(_COLUMNS, oids).fetchall()
    types = _types(connection, {row[3] for row in rows})
    unenforced = {oid for (oid,) in connection.execute(_UNENFORCED, oids).fetchall()}
    columns: dict[int, list[Column]] = defaultdict(list)
    for relation, name, text, oid, typmod, not_null, collation in rows:
        native = NativeType(oid=oid, typmod=typmod, collation=collation, **types[oid])
        nullable = not not_null or relation in unenforced
        columns[relation].append(make_column(name, text, native, nullable=nullable))
    primary: dict[int, tuple[str, ...]] = {}
    unique: dict[int, tuple[str, ...]] = {}
    for relation, is_primary, key in connection.execute(_KEYS, oids).fetchall():
        whole = set(key) <= {column.name for column in columns[relation]}
        if whole and relation not in unenforced:
            (primary if is_primary else unique).setdefault(relation, tuple(key))
    parents = dict(connection.execute(_PARENTS, oids).fetchall())
    return tuple(
        Table(
            schema_name=schema,
            name=name,
            kind=_KINDS[kind],
            # only what has pages of its own, and can be locked, is cut without a key
            keyless=Keyless.CUT if _KINDS[kind] is TableKind.TABLE else Keyless.REFUSED,
            columns=tuple(columns[oid]),
            primary_key=primary.get(oid, ()),
            unique_key=() if oid in primary else unique.get(oid, ()),
            parents=tuple(parents.get(oid, ())),
        )
        for oid, schema, name, kind in relations
    )


def _types(connection: Any, oids: set[int]) -> dict[int, dict[str, Any]]:
    rows = connection.execute(_TYPES, {"oids": sorted(oids)}).fetchall()
    shapes = read_shapes(connection, oids)
    return {
        oid: {
            "kind": kind,
            "base_oid": base,
            "element_oid": element,
            "extension": extension,
            "shape": shapes.get(oid),
        }
        for oid, kind, base, element, extension in rows
    }
