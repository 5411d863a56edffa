"""What movers' clients send of a database, kept; and events, whoever is told of them, and how."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("databases", sa.Column("extra", sa.Text(), server_default="", nullable=False))
    op.create_table(
        "receivers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("team_id", ID, nullable=False),
        sa.Column("kind", sa.Text()),
        sa.Column("pipeline_id", sa.Text()),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("events", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_receivers"),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name="fk_receivers_team_id"),
    )
    op.create_index("ix_receivers_team_id", "receivers", ["team_id"])
    op.create_table(
        "events",
        sa.Column("id", ID, nullable=False),
        sa.Column("team_id", ID, nullable=False),
        sa.Column("backfill_id", ID, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("pipeline_id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("spread", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name="fk_events_team_id"),
        sqlite_autoincrement=True,
    )
    for column in ("backfill_id", "spread", "created_at"):
        op.create_index(f"ix_events_{column}", "events", [column])
    op.create_table(
        "deliveries",
        sa.Column("id", ID, nullable=False),
        sa.Column("event_id", ID, nullable=False),
        sa.Column("team_id", ID, nullable=False),
        sa.Column("receiver_id", sa.Text()),
        sa.Column("recipients", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("not_before", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("error", sa.Text()),
        sa.Column("ended_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
        sa.ForeignKeyConstraint(["event_id"], ["events.id"], name="fk_deliveries_event_id"),
        sqlite_autoincrement=True,
    )
    for column in ("event_id", "receiver_id", "state"):
        op.create_index(f"ix_deliveries_{column}", "deliveries", [column])


def downgrade() -> None:
    for table in ("deliveries", "events", "receivers"):
        op.drop_table(table)
    op.drop_column("databases", "extra")
