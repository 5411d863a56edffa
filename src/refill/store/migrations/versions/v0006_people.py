"""What movers' clients send of a database, kept; and events, whoever is told of them, and how."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0004"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("databases", sa.Column("extra", sa.Text(), server_default="", nullable=False))


def downgrade() -> None:
    op.drop_column("databases", "extra")
