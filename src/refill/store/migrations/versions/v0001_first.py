"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "answers",
        sa.Column("team_id", ID, autoincrement=False, nullable=False),
        sa.Column("route", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("body_hash", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("team_id", "route", "key", name="pk_answers"),
    )
    op.create_index("ix_answers_created_at", "answers", ["created_at"], unique=False)
    op.create_table(
        "tallies",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_tallies"),
    )
    op.create_table(
        "targets",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("fence", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("backfill_id", ID, nullable=True),
        sa.PrimaryKeyConstraint("key", name="pk_targets"),
    )
    op.create_table(
        "teams",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_teams"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "backfills",
        sa.Column("id", ID, nullable=False),
        sa.Column("uid", sa.Text(), nullable=False),
        sa.Column("team_id", ID, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("pipeline_id", sa.Text(), nullable=False),
        sa.Column("pipeline_name", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("table", sa.Text(), nullable=True),
        sa.Column("range_start", sa.Text(), nullable=True),
        sa.Column("range_end", sa.Text(), nullable=True),
        sa.Column("order", sa.Text(), nullable=False),
        sa.Column("max_concurrent", sa.Integer(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("slices_planned", sa.Integer(), nullable=False),
        sa.Column("planned", sa.Boolean(), nullable=False),
        sa.Column("rows_estimated", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_user_id", ID, nullable=True),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("paused_at", sa.BigInteger(), nullable=True),
        sa.Column("completed_at", sa.BigInteger(), nullable=True),
        sa.Column("failed_at", sa.BigInteger(), nullable=True),
        sa.Column("cancelled_at", sa.BigInteger(), nullable=True),
        sa.Column("cancelled_user_id", ID, nullable=True),
        sa.Column("counters", sa.Text(), nullable=True),
        sa.Column("holds", sa.Text(), nullable=False),
        sa.Column("seals", sa.Boolean(), nullable=False),
        sa.Column("shared_target", sa.Text(), nullable=True),
        sa.Column("attempt", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("failures", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("not_before", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("last_claimed_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name="fk_backfills_team_id"),
        sa.PrimaryKeyConstraint("id", name="pk_backfills"),
        sa.UniqueConstraint("uid", name="uq_backfills_uid"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_backfills_active",
        "backfills",
        ["status", "last_claimed_at"],
        unique=False,
        sqlite_where=sa.text("status IN ('created', 'scheduled', 'running', 'paused')"),
        postgresql_where=sa.text("status IN ('created', 'scheduled', 'running', 'paused')"),
    )
    op.create_index(
        "ix_backfills_kind_pipeline_id_id", "backfills", ["kind", "pipeline_id", "id"], unique=False
    )
    op.create_index("ix_backfills_team_id_id", "backfills", ["team_id", "id"], unique=False)
    op.create_table(
        "databases",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("team_id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("annotations", sa.Text(), nullable=False),
        sa.Column("replication_slots", sa.Text(), nullable=False),
        sa.Column("catalogue", sa.Text(), nullable=False),
        sa.Column("catalogue_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name="fk_databases_team_id"),
        sa.PrimaryKeyConstraint("id", name="pk_databases"),
        sa.UniqueConstraint("team_id", "name", name="uq_databases_team_id_name"),
    )
    op.create_table(
        "destinations",
        sa.Column("id", ID, nullable=False),
        sa.Column("team_id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("auth_method", sa.Text(), nullable=True),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name="fk_destinations_team_id"),
        sa.PrimaryKeyConstraint("id", name="pk_destinations"),
        sa.UniqueConstraint("team_id", "name", name="uq_destinations_team_id_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "endpoints",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("team_id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("headers", sa.Text(), nullable=False),
        sa.Column("encrypted_headers", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name="fk_endpoints_team_id"),
        sa.PrimaryKeyConstraint("id", name="pk_endpoints"),
        sa.UniqueConstraint("team_id", "name", name="uq_endpoints_team_id_name"),
    )
    op.create_table(
        "users",
        sa.Column("id", ID, nullable=False),
        sa.Column("team_id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name="fk_users_team_id"),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_users_team_id", "users", ["team_id"], unique=False)
    op.create_table(
        "api_keys",
        sa.Column("id", ID, nullable=False),
        sa.Column("team_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name="fk_api_keys_team_id"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_api_keys_user_id"),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.UniqueConstraint("prefix", name="uq_api_keys_prefix"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_api_keys_team_id", "api_keys", ["team_id"], unique=False)
    op.create_table(
        "holds",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("pipeline_id", sa.Text(), nullable=False),
        sa.Column("hold", sa.Text(), nullable=False),
        sa.Column("backfill_id", ID, nullable=False),
        sa.ForeignKeyConstraint(["backfill_id"], ["backfills.id"], name="fk_holds_backfill_id"),
        sa.PrimaryKeyConstraint("kind", "pipeline_id", "hold", name="pk_holds"),
    )
    op.create_index("ix_holds_backfill_id", "holds", ["backfill_id"], unique=False)
    op.create_table(
        "sinks",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("team_id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("database_id", sa.Text(), nullable=False),
        sa.Column("destination_type", sa.Text(), nullable=False),
        sa.Column("destination_options", sa.Text(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["database_id"], ["databases.id"], name="fk_sinks_database_id"),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name="fk_sinks_team_id"),
        sa.PrimaryKeyConstraint("id", name="pk_sinks"),
        sa.UniqueConstraint("team_id", "name", name="uq_sinks_team_id_name"),
    )
    op.create_index("ix_sinks_database_id", "sinks", ["database_id"], unique=False)
    op.create_table(
        "slices",
        sa.Column("id", ID, nullable=False),
        sa.Column("backfill_id", ID, nullable=False),
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("extent", sa.Text(), nullable=False),
        sa.Column("date", sa.Text(), nullable=True),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempt", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("failures", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("pack", sa.Text(), nullable=True),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("not_before", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("rows_estimated", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("rows_read", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("rows_delivered", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("rows_filtered", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("rows_rejected", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("bytes_written", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("seconds", sa.Float(), server_default="0", nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("queued_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["backfill_id"], ["backfills.id"], name="fk_slices_backfill_id"),
        sa.PrimaryKeyConstraint("id", name="pk_slices"),
        sa.UniqueConstraint("backfill_id", "index", name="uq_slices_backfill_id_index"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_slices_claim", "slices", ["backfill_id", "state", "index", "not_before"], unique=False
    )
    op.create_index(
        "ix_slices_rejected",
        "slices",
        ["backfill_id", "rows_rejected"],
        unique=False,
        sqlite_where=sa.text("rows_rejected > 0"),
        postgresql_where=sa.text("rows_rejected > 0"),
    )
    op.create_index(
        "ix_slices_running_target",
        "slices",
        ["target", "backfill_id"],
        unique=False,
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    )
    op.create_table(
        "transfers",
        sa.Column("id", ID, nullable=False),
        sa.Column("team_id", ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("database_id", sa.Text(), nullable=False),
        sa.Column("destination_id", ID, nullable=False),
        sa.Column("destination_table", sa.Text(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("scheduled", sa.Boolean(), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_user_id", ID, nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("schedule_fired_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["database_id"], ["databases.id"], name="fk_transfers_database_id"),
        sa.ForeignKeyConstraint(
            ["destination_id"], ["destinations.id"], name="fk_transfers_destination_id"
        ),
        sa.ForeignKeyConstraint(["team_id"], ["teams.id"], name="fk_transfers_team_id"),
        sa.PrimaryKeyConstraint("id", name="pk_transfers"),
        sa.UniqueConstraint(
            "destination_id",
            "destination_table",
            name="uq_transfers_destination_id_destination_table",
        ),
        sa.UniqueConstraint("team_id", "name", name="uq_transfers_team_id_name"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_transfers_database_id", "transfers", ["database_id"], unique=False)
    op.create_table(
        "rejects",
        sa.Column("id", ID, nullable=False),
        sa.Column("backfill_id", ID, nullable=False),
        sa.Column("slice_id", ID, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["backfill_id"], ["backfills.id"], name="fk_rejects_backfill_id"),
        sa.ForeignKeyConstraint(["slice_id"], ["slices.id"], name="fk_rejects_slice_id"),
        sa.PrimaryKeyConstraint("id", name="pk_rejects"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_rejects_backfill_id_id", "rejects", ["backfill_id", "id"], unique=False)
    op.create_index("ix_rejects_slice_id", "rejects", ["slice_id"], unique=False)


def downgrade() -> None:
    op.drop_table("rejects")
    op.drop_table("transfers")
    op.drop_table("slices")
    op.drop_table("sinks")
    op.drop_table("holds")
    op.drop_table("api_keys")
    op.drop_table("users")
    op.drop_table("endpoints")
    op.drop_table("destinations")
    op.drop_table("databases")
    op.drop_table("backfills")
    op.drop_table("teams")
    op.drop_table("targets")
    op.drop_table("tallies")
    op.drop_table("answers")
