"""A driver's words as ours."""

import pytest

from refill.connectors.postgres.errors import sentence, translate
from refill.domain.errors import SnapshotLost, SourceChanged, SourceRefused, SourceUnavailable


class DriverError(Exception):
    def __init__(self, text: str, sqlstate: str | None = None) -> None:
        super().__init__(text)
        self.sqlstate = sqlstate


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("08006", SourceUnavailable),
        ("57P01", SourceUnavailable),
        ("57014", SourceUnavailable),
        ("53300", SourceUnavailable),
        ("40001", SourceUnavailable),
        ("55P03", SourceUnavailable),
        ("28P01", SourceRefused),
        ("3D000", SourceRefused),
        ("42501", SourceRefused),
        ("22012", SourceRefused),
        ("25006", SourceRefused),
        ("55000", SourceRefused),
        ("42P01", SourceChanged),
        ("42703", SourceChanged),
        ("3F000", SourceChanged),
    ],
)
def test_the_sqlstate_decides(state: str, kind: type[Exception]) -> None:
    error = translate(DriverError("it is so", state), "read public.t")
    assert type(error) is kind
    assert "read public.t" in error.message
    assert "it is so" in error.message


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('connection failed: FATAL:  password authentication failed for user "x"', SourceRefused),
        ('FATAL:  database "x" does not exist', SourceRefused),
        ("FATAL:  no pg_hba.conf entry for host", SourceRefused),
        ("server does not support SSL, but SSL was required", SourceRefused),
        ("FATAL:  sorry, too many clients already", SourceUnavailable),
        ("FATAL:  the database system is starting up", SourceUnavailable),
        ("Connection refused", SourceUnavailable),
        ("server closed the connection unexpectedly", SourceUnavailable),
        ('invalid snapshot identifier: "1"', SnapshotLost),
        ('snapshot "0003-1" does not exist', SnapshotLost),
    ],
)
def test_without_one_its_words_do(text: str, kind: type[Exception]) -> None:
    assert type(translate(DriverError(text), "connect")) is kind


def test_what_a_person_reads_is_one_line_without_our_sql() -> None:
    text = (
        'INVALID_ARGUMENT: Failed to prepare query: ERROR:  column "x" does not exist\n'
        "LINE 1: SELECT x\n       ^\n\nQuery was: SELECT x. SQLSTATE: 42703"
    )
    assert sentence(DriverError(text)) == 'column "x" does not exist'
    assert type(translate(DriverError(text), "read")) is SourceChanged
