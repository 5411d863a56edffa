"""What the catalogue knows of a table: its columns, types and key."""

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A frozen value that is stored as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Column(Record):
    """A column as the source's catalogue describes it."""

    name: str
    type: str  # as format_type() prints it: "numeric(12,2)", "timestamp with time zone"
    oid: int
    typmod: int = -1
    not_null: bool = False
    collation: str | None = None
    # what the type is underneath, so that a task needs no look at the catalogue:
    # b base, c composite, d domain, e enum, m multirange, p pseudo, r range (pg_type.typtype)
    kind: str = "b"
    base_oid: int | None = None  # of a domain: the type under it, all the way down
    element_oid: int | None = None  # of an array
    extension: str | None = None  # "hstore", "citext", … when an extension brought the type


class Table(Record):
    """A relation of a database, with the key that it can be sliced by."""

    schema_name: str
    name: str
    kind: str = "r"  # pg_class.relkind: r table, p partitioned, v view, m matview, f foreign
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    # a unique index over columns that are all NOT NULL, where there is no primary key
    unique_key: tuple[str, ...] = ()
    # full names of the tables that it is a partition of or inherits from, all the way up: who
    # reads one of them reads its rows too
    parents: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        return f"{self.schema_name}.{self.name}"

    @property
    def key(self) -> tuple[str, ...]:
        return self.primary_key or self.unique_key

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)


def split_name(name: str) -> tuple[str, str]:
    """("schema", "table") of "schema.table", or of "table" in the schema public."""
    schema, dot, table = name.partition(".")
    return (schema, table) if dot else ("public", name)
