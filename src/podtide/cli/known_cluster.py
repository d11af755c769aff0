"""The cluster that a command names, as the allocator knows it: a name that was misspelt must not pass for one that is done with."""

from podtide.allocator.port import AdministeredAllocator
from podtide.allocator.terms import ClusterRecord
from podtide.core.errors import FixError, InvalidInput
from podtide.resources.timestamps import to_time


class StillActing(FixError):
    """A controller has a term for the cluster that is to be forgotten."""


async def known_cluster(allocator: AdministeredAllocator, name: str) -> ClusterRecord:
    """What the allocator knows of the cluster; refused when that is nothing, not even what is in quarantine."""
    records = (await allocator.list_clusters()).clusters
    for record in records:
        if record.name == name:
            return record
    if (await allocator.quarantined(cluster=name, limit=1)).items:
        return ClusterRecord(name=name)
    known = ", ".join(record.name for record in records) or "none"
    raise InvalidInput(f"no cluster {name} is known to the allocator: those that are: {known}")


def refuse_if_acting(record: ClusterRecord, uid: str | None) -> None:
    """Raises when a controller acts for the cluster whose containers, of one uid or all, are to be deleted."""
    if record.holder and uid in {None, record.uid}:
        raise StillActing(
            f"controller {record.holder} acts for cluster {record.name} until {to_time(record.term_until)}, and renews that as "
            "long as it runs: the nodes of a cluster that lives would lose their addresses; stop its podtide and try "
            "again, or say --force"
        )
