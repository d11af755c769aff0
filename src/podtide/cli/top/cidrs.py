"""The third table of `podtide top`: the ranges of subnets that have several, each with its gateway."""

from podtide.cli.top.overview import Overview
from podtide.cli.top.tables import TopRow, TopTable


def cidr_tables(overview: Overview) -> tuple[TopTable, ...]:
    """The table; none where every subnet has one range."""
    rows = tuple(
        TopRow((line.name, each.cidr, each.gateway or "-", "draining" if each.draining else "ok"))
        for line in overview.subnets
        if len(line.cidrs) > 1
        for each in line.cidrs
    )
    return (TopTable(("SUBNET", "CIDR", "GATEWAY", "STATE"), rows),) if rows else ()
