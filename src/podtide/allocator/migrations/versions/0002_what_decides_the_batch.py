"""What a subnet's batch is decided from: counts of containers that are alike, clusters' bounds, and what is in force.

`alike` counts every container that is in a subnet, newcomers without a primary too, by what it states and takes; `taken`
is its primary and what it holds or wants, whichever is more. Containers from before have stated nothing.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
"""Ordered by its bytes in both databases, as it is in Python."""

_BITS = " + ".join(f"((mask >> {position}) & 1)" for position in range(16))
"""How many addresses a mask has: neither database counts bits in a way that the other knows."""

_COUNT_QUARANTINED = f"""UPDATE subnets SET quarantined = coalesce(
    (SELECT sum({_BITS}) FROM resting WHERE resting.subnet = subnets.id AND resting.quarantined = 1), 0)"""  # noqa: S608 - our own columns
_COUNT_ALIKE = f"""INSERT INTO alike (subnet, cluster, stated, taken, containers)
    SELECT subnet, cluster, '', 1 + CASE WHEN held > wanted THEN held ELSE wanted END, count(*)
    FROM (SELECT containers.subnet AS subnet, containers.cluster AS cluster, containers.wanted AS wanted,
                 coalesce((SELECT sum({_BITS}) FROM grants WHERE grants.container = containers.id), 0) AS held
          FROM containers WHERE containers.subnet IS NOT NULL) AS holding
    GROUP BY 1, 2, 4"""  # noqa: S608 - our own columns


def upgrade() -> None:
    """Add the columns and tables, and count what is there."""
    for table, columns in (
        (
            "subnets",
            (
                _number("quarantined"),
                _number("batch"),  # 0 until it was decided for the first time
                _text("buffer", "0"),
                _number("top"),
                _number("exhausted"),  # 0 or 1
                _number("starved"),  # 0 or 1
                _text("step"),
                _text("reason"),
                _number("serial"),
                sa.Column("changed_at", sa.Double, nullable=False, server_default=sa.text("0")),
            ),
        ),
        ("containers", (_text("stated"), _number("statement_number"))),
    ):
        for column in columns:
            op.add_column(table, column)
    op.create_table(
        "alike",
        sa.Column("subnet", sa.BigInteger, primary_key=True),
        sa.Column("cluster", _TEXT, primary_key=True),
        sa.Column("stated", _TEXT, primary_key=True),
        sa.Column("taken", sa.BigInteger, primary_key=True),
        sa.Column("containers", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "bounds",
        sa.Column("subnet", sa.BigInteger, primary_key=True),
        sa.Column("cluster", _TEXT, primary_key=True),
        sa.Column("batch", sa.BigInteger, nullable=False),
        sa.Column("buffer", _TEXT, nullable=False),
        sa.Column("lower", _TEXT, nullable=False),
        sa.Column("upper", _TEXT, nullable=False),
        sa.Column("min_batch", sa.BigInteger, nullable=False),
        sa.Column("fixed", sa.BigInteger),
        sqlite_with_rowid=False,
    )
    op.execute(_COUNT_QUARANTINED)
    op.execute(_COUNT_ALIKE)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default=sa.text("0"))


def _text(name: str, default: str = "") -> sa.Column[str]:
    return sa.Column(name, _TEXT, nullable=False, server_default=default)
