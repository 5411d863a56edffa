"""What a transfer reads and writes, as its settings say it: checked against what the source has."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from zoneinfo import available_timezones

from refill.domain.errors import Invalid
from refill.domain.table import DATED, Column, Table

Scalar = str | int | bool | None

FIELDS: Mapping[str, str] = {
    "table": "the table to read, schema.name; public when there is no schema",
    "date_column": "the column that says which date a row belongs to",
    "timezone": "IANA name of the zone in which a date begins; UTC when not given",
    "columns": "comma-separated names of the columns to read; all when not given",
    "query": "SQL with a bound :date, read instead of a table",
    "transform": "Spark SQL over the view source",
    "destination_table": "the table or directory to write; the source table's name when not given",
    "max_rejects": "how many rows of a backfill may be undeliverable; none when not given",
}
MAX_NAME_BYTES = 63
# where a transfer keeps the columns that its query returned when it was last checked
QUERY_COLUMNS = "query_columns"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with a transfer, with a word for programs."""

    field: str
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The settings, understood."""

    table: str | None = None
    query: str | None = None
    date_column: str | None = None
    timezone: str = "UTC"
    columns: tuple[str, ...] = ()
    transform: str | None = None
    destination_table: str = ""
    max_rejects: int = 0
    query_columns: tuple[Column, ...] = ()


@dataclass(slots=True)
class SettingsReader:
    """Collects every problem instead of stopping at the first one."""

    settings: Mapping[str, Scalar]
    # None: no such table. Empty columns: the source could not be asked
    find_table: Callable[[str], Table | None]
    describe_query: Callable[[str], Sequence[Column]]
    query_dialect: str | None  # None: the source takes no queries
    problems: list[Problem] = field(default_factory=list)

    def read(self) -> Reading:
        for name in self.settings:
            if name not in FIELDS:
                known = ", ".join(FIELDS)
                self._complain(name, "notAllowed", f"there is no such setting; there are: {known}")
        table_name, query = self._text("table"), self._text("query")
        known_columns: Sequence[Column] = ()
        if table_name and query:
            self._complain("query", "notAllowed", "give a table or a query, not both")
        elif table_name:
            table_name, known_columns = self._check_table(table_name)
        elif query:
            query, known_columns = self._check_query(query)
        else:
            self._complain("table", "isEmpty", "a table, or a query with :date, is needed")
        columns = self._columns(known_columns, bool(query))
        return Reading(
            table=table_name,
            query=query,
            date_column=self._date_column(known_columns, bool(query)),
            timezone=self._timezone(),
            columns=columns,
            transform=self._transform(columns or tuple(column.name for column in known_columns)),
            destination_table=self._destination_table(table_name, bool(query)),
            max_rejects=self._max_rejects(),
            query_columns=tuple(known_columns) if query else (),
        )

    def _check_table(self, name: str) -> tuple[str, Sequence[Column]]:
        found = self.find_table(name)
        if found is None:
            self._complain(
                "table",
                "notFound",
                f"the source has no table {name}; check its name, or refresh the source's tables",
            )
            return name, ()
        return found.full_name, found.columns

    def _check_query(self, query: str) -> tuple[str, Sequence[Column]]:
        if self.query_dialect is None:
            self._complain("query", "notAllowed", "this source takes no queries; name a table")
            return query, ()
        from refill.guards.query import check_dated_query  # the parser is slow to import

        try:
            query = check_dated_query(query, self.query_dialect)
            return query, self.describe_query(query)
        except Invalid as error:
            self._adopt("query", error)
            return query, ()

    def _columns(self, known: Sequence[Column], from_query: bool) -> tuple[str, ...]:
        text = self._text("columns")
        if text is None:
            return ()
        if from_query:
            self._complain("columns", "notAllowed", "select the columns in the query")
            return ()
        names = tuple(name.strip() for name in text.split(",") if name.strip())
        if len(set(names)) != len(names):
            self._complain("columns", "notUnique", "a column is named twice")
        unknown = [name for name in names if known and not _has(known, name)]
        if unknown:
            there = ", ".join(column.name for column in known)
            self._complain(
                "columns", "notFound", f"there is no column {unknown[0]}; there are: {there}"
            )
        return names

    def _date_column(self, known: Sequence[Column], from_query: bool) -> str | None:
        name = self._text("date_column")
        if name is None:
            if not from_query:
                self._complain(
                    "date_column", "isEmpty", "name the column that says which date a row is of"
                )
            return None
        column = next((column for column in known if column.name == name), None)
        if known and column is None:
            self._complain("date_column", "notFound", f"there is no column {name}")
        elif column and column.family not in DATED:
            self._complain(
                "date_column",
                "invalid",
                f"{name} is {column.type}; a date or a timestamp is needed",
            )
        return name

    def _timezone(self) -> str:
        name = self._text("timezone") or "UTC"
        if name not in _timezones():
            self._complain(
                "timezone",
                "invalid",
                f"there is no time zone {name}; use a name as Europe/Helsinki",
            )
        return name

    def _transform(self, columns: Sequence[str]) -> str | None:
        sql = self._text("transform")
        if sql is not None:
            from refill.guards.transform import check_transform  # the parser is slow to import

            try:
                check_transform(sql, columns, row_by_row=False)
            except Invalid as error:
                self._adopt("transform", error)
        return sql

    def _destination_table(self, table_name: str | None, from_query: bool) -> str:
        name = self._text("destination_table")
        if name is None:
            if table_name is None:
                if from_query:
                    self._complain(
                        "destination_table",
                        "isEmpty",
                        "name the table to write the query's rows to",
                    )
                return ""
            name = table_name.partition(".")[2] or table_name
        if (
            len(name.encode()) > MAX_NAME_BYTES
            or name[0] in "._"
            or any(not letter.isprintable() or letter in '/\\"' for letter in name)
        ):
            self._complain(
                "destination_table",
                "invalid",
                f"at most {MAX_NAME_BYTES} bytes, no slash, quote or control character, "
                "and neither . nor _ in front",
            )
        return name

    def _max_rejects(self) -> int:
        value = self.settings.get("max_rejects")
        if value is None:
            return 0
        if isinstance(value, bool) or not str(value).isdecimal():
            self._complain("max_rejects", "invalid", "a whole number, 0 or more, is needed")
            return 0
        return int(value)

    def _text(self, name: str) -> str | None:
        value = self.settings.get(name)
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            self._complain(name, "invalid", "a text is needed")
            return None
        return value.strip() or None

    def _adopt(self, name: str, error: Invalid) -> None:
        problem = next(iter(error.fields.values()), [error.message])[0]
        self._complain(name, "invalid", problem.rstrip("."))

    def _complain(self, name: str, code: str, message: str) -> None:
        self.problems.append(Problem(field=name, code=code, message=message))


@cache
def _timezones() -> frozenset[str]:
    return frozenset(available_timezones())


def _has(columns: Sequence[Column], name: str) -> bool:
    return any(column.name == name for column in columns)
