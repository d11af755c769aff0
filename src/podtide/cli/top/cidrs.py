"""The third table of `podtide top`: the ranges of subnets that have several, each with its gateway."""

from podtide.cli.top.overview import Overview
from podtide.cli.top.tables import Row, Table


def cidr_tables(overview: Overview) -> tuple[Table, ...]:
    """The table; none where every subnet has one range."""
    rows = tuple(
        Row((line.name, each.cidr, each.gateway or "-", "draining" if each.draining else "ok"))
        for line in overview.subnets
        if len(line.cidrs) > 1
        for each in line.cidrs
    )
    return (Table(("SUBNET", "CIDR", "GATEWAY", "STATE"), rows),) if rows else ()
