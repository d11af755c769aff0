"""Who a cluster is, whose every container is, and what tells that a database went back.

`store` has one row, for the database itself. `sequence` grows with every change of what is granted in a subnet, and new
versions of containers are drawn from it. Containers from before record no uid.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
"""Ordered by its bytes in both databases, as it is in Python."""


def upgrade() -> None:
    """Add the tables and columns, and begin each sequence above the versions that were given."""
    op.create_table(
        "store",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),  # always 1
        _text("uid"),  # "" until the database is first opened
        _text("mark"),  # which server the database is on, where that can be told
        _number("removed_sequences"),  # of subnets that are gone
        _number("recovery"),  # the number of the last recovery
        sa.Column(
            "recovering_since", sa.Double, nullable=False, server_default=sa.text("0")
        ),  # 0 when it grants
        _text("reason"),
    )
    op.create_table(
        "clusters",
        sa.Column("name", _TEXT, primary_key=True),
        _text("uid"),
        _text("holder"),
        sa.Column("term_until", sa.Double, nullable=False, server_default=sa.text("0")),
        _number("reported"),  # the last recovery that has its report
        sqlite_with_rowid=False,
    )
    op.add_column("subnets", _number("sequence"))
    op.add_column("containers", _text("cluster_uid"))
    op.add_column("containers", _number("confirmed"))  # the last recovery in which its node's report had it
    op.execute("INSERT INTO store (id) VALUES (1)")
    op.execute(
        """UPDATE subnets SET sequence = coalesce(
            (SELECT max(version) FROM containers WHERE containers.subnet = subnets.id), 0)"""
    )


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default=sa.text("0"))


def _text(name: str, default: str = "") -> sa.Column[str]:
    return sa.Column(name, _TEXT, nullable=False, server_default=default)
