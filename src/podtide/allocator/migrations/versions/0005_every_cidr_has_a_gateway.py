"""What each CIDR of a subnet has: its gateway, where its numbers begin, how far they are used, and whether it drains.

A subnet that has grown knows of one gateway and one number so far. Which addresses its other CIDRs can spare takes
arithmetic with addresses, so that is done after these statements, in the same transaction (`store.legacy_gateways`).
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
"""Ordered by its bytes in both databases, as it is in Python."""


def upgrade() -> None:
    """Add the columns, and drop those that they take the place of."""
    for column, default in (("gateways", ""), ("next_chunks", ""), ("first_chunks", "0"), ("draining", "")):
        op.add_column("subnets", sa.Column(column, _TEXT, nullable=False, server_default=default))
    op.execute("UPDATE subnets SET gateways = gateway, next_chunks = CAST(next_chunk AS TEXT)")
    op.drop_column("subnets", "gateway")
    op.drop_column("subnets", "next_chunk")
