"""How a subnet was used, and not only how full it was; and days, beside the series that are there.

What was kept so far stays: of those rows the highest reading is known, and no time that it was so. The days begin with what the
quarters of an hour tell: the highest of each day, and for a mean, that of their highest readings, each for a quarter of an hour.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_READINGS = ("demand", "need", "on_pods", "idle")
_QUARTERS_A_DAY = 96

_FILL_DAYS = f"""INSERT INTO samples
        (subnet, step, slot, at, capacity, reserved, last_capacity, observed_ms, reserved_ms)
    SELECT days.subnet, 86400, days.day, peak.at, peak.capacity, peak.reserved, latest.capacity,
        900000 * days.quarters, 900000 * days.reserved
    FROM (SELECT subnet, slot / {_QUARTERS_A_DAY} AS day, count(*) AS quarters, sum(reserved) AS reserved,
                 max(slot) AS latest
          FROM samples WHERE step = 900 GROUP BY 1, 2) AS days
    JOIN samples AS latest ON latest.subnet = days.subnet AND latest.step = 900 AND latest.slot = days.latest
    JOIN samples AS peak ON peak.subnet = days.subnet AND peak.step = 900 AND peak.slot =
        (SELECT slot FROM samples AS among
         WHERE among.subnet = days.subnet AND among.step = 900
             AND among.slot BETWEEN days.day * {_QUARTERS_A_DAY} AND days.day * {_QUARTERS_A_DAY} + {_QUARTERS_A_DAY - 1}
         ORDER BY among.reserved DESC, among.slot DESC LIMIT 1)"""  # noqa: S608 - our own columns and numbers


def upgrade() -> None:
    """Add the columns, and fill the days."""
    for name in ("last_capacity", "batch", "owed", "containers", *_READINGS):
        op.add_column("samples", sa.Column(name, sa.BigInteger))  # none where it was not read
    for name in ("observed", "reserved", "exhausted", "starved", "read", *_READINGS):
        op.add_column("samples", _number(f"{name}_ms"))
    op.add_column("subnets", sa.Column("accrued", sa.Double, nullable=False, server_default=sa.text("0")))
    for name in ("peak", "reserved_ms"):
        op.add_column("subnets", _number(name))
    op.add_column("subnets", sa.Column("demand_read", sa.Double, nullable=False, server_default=sa.text("0")))
    op.execute("UPDATE subnets SET accrued = sampled, peak = reserved")
    op.execute("UPDATE samples SET last_capacity = capacity WHERE step > 0")
    op.execute(_FILL_DAYS)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default=sa.text("0"))
