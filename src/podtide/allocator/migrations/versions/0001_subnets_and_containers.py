"""Subnets in chunks of sixteen addresses, containers and what they hold, what rests, and samples of utilization.

Every usable address of a chunk that has a row is in exactly one of: the chunk's `free`, a grant's `mask`, a container's
primary, or a row of `resting`. Chunks without a row are free as a whole.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
"""Ordered by its bytes in both databases, as it is in Python."""


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "networks",
        sa.Column("name", _TEXT, primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "subnets",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("network", _TEXT, sa.ForeignKey("networks.name"), nullable=False),
        sa.Column("name", _TEXT, nullable=False),
        sa.Column("cidrs", _TEXT, nullable=False),
        sa.Column("gateway", _TEXT, nullable=False),
        sa.Column("keep_back", _TEXT, nullable=False),
        sa.Column("keep_back_first", sa.BigInteger, nullable=False),
        sa.Column("capacity", sa.BigInteger, nullable=False),
        sa.Column("reserved", sa.BigInteger, nullable=False),
        sa.Column("containers", sa.BigInteger, nullable=False),
        sa.Column("owed", sa.BigInteger, nullable=False),
        sa.Column("next_chunk", sa.BigInteger, nullable=False),
        sa.Column("sampled", sa.Double, nullable=False),
        sa.UniqueConstraint("network", "name"),
    )
    op.create_table(
        "containers",
        sa.Column("id", _TEXT, primary_key=True),
        sa.Column("cluster", _TEXT, nullable=False),
        sa.Column("subnet", sa.BigInteger),  # none for the deleted
        sa.Column("node", _TEXT, nullable=False),
        sa.Column("primary_number", sa.BigInteger),  # none while it waits for its first address
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("request_uid", _TEXT, nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("superseded", _TEXT, nullable=False),
        sa.Column("wanted", sa.BigInteger, nullable=False),
        sa.Column("owed", sa.BigInteger, nullable=False),
        sa.Column("owed_since", sa.Double, nullable=False),
        sa.Column("renewed", sa.Double, nullable=False),
        sa.Column("waiting_pods", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    _create_partial_index("containers_by_subnet", "containers", ["subnet", "id"], "subnet IS NOT NULL")
    _create_partial_index("containers_by_cluster", "containers", ["cluster", "id"], "subnet IS NOT NULL")
    _create_partial_index("containers_by_node", "containers", ["node", "id"], "subnet IS NOT NULL")
    _create_partial_index(
        "containers_owed",
        "containers",
        ["subnet", sa.text("waiting_pods DESC"), "owed_since", "id"],
        "owed > 0",
    )
    op.create_table(
        "grants",
        sa.Column("container", _TEXT, primary_key=True),
        sa.Column("version", sa.BigInteger, primary_key=True),
        sa.Column("chunk", sa.BigInteger, primary_key=True),
        sa.Column("mask", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "chunks",
        sa.Column("subnet", sa.BigInteger, primary_key=True),
        sa.Column("chunk", sa.BigInteger, primary_key=True),
        sa.Column("free", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    _create_partial_index("chunks_wholly_free", "chunks", ["subnet", "chunk"], "free = 65535")
    _create_partial_index("chunks_partly_free", "chunks", ["subnet", "chunk"], "free > 0 AND free < 65535")
    op.create_table(
        "resting",
        sa.Column("subnet", sa.BigInteger, primary_key=True),
        sa.Column("quarantined", sa.BigInteger, primary_key=True),  # 0 cools down, 1 is in quarantine
        sa.Column("until", sa.Double, primary_key=True),
        sa.Column("chunk", sa.BigInteger, primary_key=True),
        sa.Column("holder", _TEXT, primary_key=True),
        sa.Column("mask", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    _create_partial_index("cooling_by_holder", "resting", ["subnet", "holder"], "quarantined = 0")
    op.create_table(
        "samples",
        sa.Column("subnet", sa.BigInteger, primary_key=True),
        sa.Column("step", sa.BigInteger, primary_key=True),  # seconds that one row stands for
        sa.Column("slot", sa.BigInteger, primary_key=True),  # which such step since 1970
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("capacity", sa.BigInteger, nullable=False),
        sa.Column("reserved", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )


def _create_partial_index(name: str, table: str, columns: list[str | sa.TextClause], where: str) -> None:
    condition = sa.text(where)
    op.create_index(name, table, columns, sqlite_where=condition, postgresql_where=condition)
