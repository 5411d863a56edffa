"""When each team was last served, which slices ran when an engine died, what was used of limits."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), server_default="0", nullable=False)


def upgrade() -> None:
    op.add_column(
        "teams", sa.Column("claimed_at", sa.BigInteger(), server_default="0", nullable=False)
    )
    op.add_column(
        "slices", sa.Column("suspicions", sa.BigInteger(), server_default="0", nullable=False)
    )
    where = sa.text("suspicions > 1")
    op.create_index(
        "ix_slices_quarantined",
        "slices",
        ["backfill_id", "state"],
        sqlite_where=where,
        postgresql_where=where,
    )
    op.create_table(
        "rates",
        sa.Column("counted", sa.Text(), nullable=False),
        _number("hour"),
        _number("used"),
        sa.PrimaryKeyConstraint("counted", name="pk_rates"),
    )


def downgrade() -> None:
    op.drop_table("rates")
    op.drop_index("ix_slices_quarantined", "slices")
    op.drop_column("slices", "suspicions")
    op.drop_column("teams", "claimed_at")
