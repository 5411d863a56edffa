"""Columns by family, specs by kind, extents of a source's own: what was stored is rewritten once.

Everything stored before this was PostgreSQL's; the names of its catalogue stand here as the data
of that time had them.
"""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

Row = dict[str, Any]

_FAMILIES = {
    16: "boolean",
    **dict.fromkeys((20, 21, 23, 26), "integer"),
    1700: "decimal",
    **dict.fromkeys((700, 701), "float"),
    **dict.fromkeys((19, 25, 1042, 1043), "text"),
    17: "bytes",
    1082: "date",
    **dict.fromkeys((1083, 1266), "time"),
    1114: "timestamp",
    1184: "instant",
    2950: "uuid",
    **dict.fromkeys((114, 3802), "json"),
}
_UNSORTABLE = {114, 142, 600, 628, 601, 603, 602, 604, 718, 1790}
# with what goes without saying
_NATIVE = {
    **{"oid": None, "typmod": -1, "collation": None, "kind": "b"},
    **{"base_oid": None, "element_oid": None, "extension": None},
}
_KINDS = {"v": "view", "m": "materialized view", "f": "foreign table"}
_BOTH = (
    *("database_id", "database_type", "database_name", "filter", "transform", "sink_type"),
    *("sink_options", "timestamp_format", "max_rejects", "max_retry_count", "max_rows_per_second"),
)
_PORTION = 500


def upgrade() -> None:
    connection = op.get_bind()
    _rewrite(connection, "databases", ("catalogue",), _catalogue)
    _rewrite(connection, "transfers", ("definition",), _definition)
    _rewrite(connection, "backfills", ("spec", "kind", "pipeline_id"), _spec)
    op.drop_column("backfills", "table")  # what is read says it
    _rewrite(connection, "slices", ("extent",), _extent, where="extent LIKE '%\"ctid\"%'")


def downgrade() -> None:
    raise NotImplementedError("What was stored by family cannot be made PostgreSQL's again.")


def _rewrite(
    connection: sa.Connection, table: str, names: tuple[str, ...], new: Any, where: str = "1 = 1"
) -> None:
    """The first column anew, from the row; in portions, since a store may hold many."""
    found = connection.execute(sa.text(f"SELECT id, {', '.join(names)} FROM {table} WHERE {where}"))
    rows = [dict(row) for row in found.mappings()]
    update = sa.text(f"UPDATE {table} SET {names[0]} = :value WHERE id = :id")
    for start in range(0, len(rows), _PORTION):
        portion = rows[start : start + _PORTION]
        connection.execute(update, [{"id": row["id"], "value": new(row)} for row in portion])


def _catalogue(row: Row) -> str:
    return _text([_table(table) for table in json.loads(row["catalogue"])])


def _definition(row: Row) -> str:
    definition = json.loads(row["definition"])
    extra = definition.get("extra", {})
    if "query_columns" in extra:
        extra["query_columns"] = [_column(column) for column in extra["query_columns"]]
    return _text(definition)


def _spec(row: Row) -> str:
    old = json.loads(row["spec"])
    spec = {name: old[name] for name in _BOTH if name in old} | {"kind": row["kind"]}
    if row["kind"] == "sink":
        spec |= {name: old[name] for name in ("batch_size", "message") if name in old}
        spec |= {"sink_id": old.get("sink_id") or row["pipeline_id"], "read": _keyed(old)}
        return _text(spec)
    spec |= {
        "read": _query(old) if old.get("query") is not None else _dated(old),
        "dates": old.get("dates", []),
        "transfer_id": old.get("transfer_id") or int(row["pipeline_id"]),
        "destination_id": old.get("destination_id") or 0,
        "destination_table": old.get("destination_table") or "",
    }
    return _text(spec)


def _keyed(old: Row) -> Row:
    names = ("columns", "sort_columns", "start_position", "end_position")
    kept = {name: old[name] for name in names if name in old}
    return {"kind": "keyed", "table": _table(old["table"]), **kept}


def _dated(old: Row) -> Row:
    return {
        "kind": "dated",
        "table": _table(old["table"]),
        "columns": old.get("columns", []),
        "date_column": old.get("date_column") or "",
        "timezone": old.get("timezone", "UTC"),
    }


def _query(old: Row) -> Row:
    columns = (old.get("table") or {}).get("columns", [])
    return {
        "kind": "query",
        "query": old["query"],
        "fields": [_column(column) for column in columns],
        "date_column": old.get("date_column"),
    }


def _table(old: Row) -> Row:
    kept = ("schema_name", "name", "primary_key", "unique_key", "parents")
    kind = old.get("kind", "r")
    return {
        **{name: old[name] for name in kept if name in old},
        "kind": _KINDS.get(kind, "table"),
        "keyless": "refused" if kind in _KINDS else "cut",
        "columns": [_column(column) for column in old.get("columns", [])],
    }


def _column(old: Row) -> Row:
    under = old.get("base_oid") or old["oid"]
    return {
        "name": old["name"],
        "type": old["type"],
        "family": _family(old, under),
        "nullable": not old.get("not_null", False),
        "comparison": _comparison(old, under),
        "sortable": under not in _UNSORTABLE,
        "native": {k: old[k] for k, plain in _NATIVE.items() if old.get(k, plain) != plain},
    }


def _family(old: Row, under: int) -> str:
    if old.get("element_oid") is not None:
        return "other"
    return "text" if old.get("extension") == "citext" else _FAMILIES.get(under, "other")


def _comparison(old: Row, under: int) -> str:
    if old.get("element_oid") is not None or under == 142 or old.get("extension") == "hstore":
        return "none"
    if old.get("extension") == "citext":
        return "source_only"
    return "unpadded" if under == 1042 else "family"


def _extent(row: Row) -> str:
    old = json.loads(row["extent"])
    if old.get("kind") != "ctid":
        return str(row["extent"])
    native = {name: old[name] for name in ("relation", "first_page", "end_page", "snapshot")}
    relation, first, end = old["relation"], old["first_page"], old["end_page"]
    return _text(
        {
            "kind": "native",
            "label": "pages",
            "lower": f"{relation} ({first},0)",
            "upper": None if end is None else f"{relation} ({end},0)",
            "same_order": True,
            "native": native,
        }
    )


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
