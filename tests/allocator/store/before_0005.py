"""What brings a database back to before every CIDR of a subnet had a gateway of its own."""

from importlib import import_module

from allocator.store.before_0006 import UNDO_0006
from podtide.allocator.migrations import versions

BEFORE: str = import_module(f"{versions.__name__}.0005_every_cidr_has_a_gateway").down_revision
"""The schema before."""

UNDO_0005 = (
    *UNDO_0006,
    "ALTER TABLE subnets ADD COLUMN gateway TEXT NOT NULL DEFAULT '10.1.0.1'",
    "ALTER TABLE subnets ADD COLUMN next_chunk BIGINT NOT NULL DEFAULT 0",
    # One number for all CIDRs: the last one's, where a subnet has several.
    "UPDATE subnets SET next_chunk = (SELECT coalesce(max(chunk) + 1, 0) FROM chunks WHERE subnet = subnets.id)",
    *(
        f"ALTER TABLE subnets DROP COLUMN {column}"
        for column in ("gateways", "next_chunks", "first_chunks", "draining")
    ),
)
"""Statements for a database whose subnets' first gateway is 10.1.0.1."""
