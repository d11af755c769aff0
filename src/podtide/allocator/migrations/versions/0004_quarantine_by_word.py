"""A quarantine ends only by a call: its addresses by removed container, and which machine each container's Node is.

What is in quarantine now has no machine that could be recognised. Its time stays as it was.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
"""Ordered by its bytes in both databases, as it is in Python."""

_BITS = " + ".join(f"((mask >> {position}) & 1)" for position in range(16))
"""How many addresses a mask has: neither database counts bits in a way that the other knows."""

_DEFAULT_SECONDS = 360
"""How long they were to last, as far as is known."""

_LIST = f"""INSERT INTO quarantines
        (container, subnet, cluster, cluster_uid, node, machine_id, system_uuid, boot_id, primary_number, held, began, until)
    SELECT resting.holder, min(resting.subnet), min(containers.cluster), '', min(containers.node), '', '', '', NULL,
        sum({_BITS}), max(resting.until) - {_DEFAULT_SECONDS}, max(resting.until)
    FROM resting JOIN containers ON containers.id = resting.holder
    WHERE resting.quarantined = 1 GROUP BY resting.holder"""  # noqa: S608 - our own columns


def upgrade() -> None:
    """Add the columns and the table, and write down what is in quarantine."""
    for name in ("machine_id", "system_uuid", "boot_id"):
        op.add_column("containers", _text(name))
    op.create_table(
        "quarantines",
        sa.Column("container", _TEXT, primary_key=True),
        sa.Column("subnet", sa.BigInteger, nullable=False),
        sa.Column("cluster", _TEXT, nullable=False),
        sa.Column("cluster_uid", _TEXT, nullable=False),  # "" where it is not known which cluster it was
        sa.Column("node", _TEXT, nullable=False),
        sa.Column("machine_id", _TEXT, nullable=False),
        sa.Column("system_uuid", _TEXT, nullable=False),
        sa.Column("boot_id", _TEXT, nullable=False),
        sa.Column("primary_number", sa.BigInteger),  # none where it is not known which it was
        sa.Column("held", sa.BigInteger, nullable=False),  # how many addresses there were when it began
        sa.Column("began", sa.Double, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("quarantines_by_node", "quarantines", ["cluster", "node", "container"])
    op.create_index("quarantines_by_beginning", "quarantines", ["began"])
    condition = sa.text("quarantined = 1")
    op.create_index(
        "quarantined_by_holder",
        "resting",
        ["subnet", "holder"],
        sqlite_where=condition,
        postgresql_where=condition,
    )
    op.execute(_LIST)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, _TEXT, nullable=False, server_default="")
