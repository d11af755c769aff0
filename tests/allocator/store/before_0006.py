"""What brings a database back to before it was kept how subnets were used."""

from importlib import import_module

from podtide.allocator.migrations import versions

BEFORE: str = import_module(f"{versions.__name__}.0006_how_subnets_were_used").down_revision
"""The schema before."""

_READINGS = ("demand", "need", "on_pods", "idle")

UNDO_0006 = (
    "DELETE FROM samples WHERE step = 86400",
    *(
        f"ALTER TABLE samples DROP COLUMN {column}"
        for column in ("last_capacity", "batch", "owed", "containers", *_READINGS)
    ),
    *(
        f"ALTER TABLE samples DROP COLUMN {column}_ms"
        for column in ("observed", "reserved", "exhausted", "starved", "read", *_READINGS)
    ),
    *(
        f"ALTER TABLE subnets DROP COLUMN {column}"
        for column in ("accrued", "peak", "reserved_ms", "demand_read")
    ),
)
