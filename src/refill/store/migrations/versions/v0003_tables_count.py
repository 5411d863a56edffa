"""How many tables a database has: lists say so, and do not read its catalogue for it."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

COUNTED = {
    "sqlite": "json_array_length(catalogue)",
    "postgresql": "json_array_length(catalogue::json)",
}


def upgrade() -> None:
    op.add_column(
        "databases", sa.Column("tables_count", sa.BigInteger(), server_default="0", nullable=False)
    )
    counted = COUNTED[op.get_context().dialect.name]
    op.execute(f"UPDATE databases SET tables_count = {counted}")


def downgrade() -> None:
    op.drop_column("databases", "tables_count")
