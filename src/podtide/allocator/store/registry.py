"""The clusters: to which uid each name belongs, who has a term, who reported, and the recovery of a store that went back."""

from collections.abc import Iterable

from podtide.allocator.errors import AnotherTerm
from podtide.allocator.store.script import Query, Rows, Script
from podtide.allocator.store.tables.transaction_context import another_uid, begin_recovery, read_context
from podtide.allocator.terms import ClusterRecord, ClusterRegistry, OpenedTerm, SeenVersion, TermClaim
from podtide.core.errors import InvalidInput
from podtide.core.subnet.cluster_identity import TERM_SECONDS, HeldTerm, is_anothers, may_open_term
from podtide.core.subnet.store_continuity import awaited_reports, is_behind, is_forgotten

_LOCK_STORE = "SELECT recovery, recovering_since, reason, removed_sequences FROM store WHERE id = 1 /*lock*/"
_READ_CLUSTERS = "SELECT name, uid, holder, term_until, reported FROM clusters ORDER BY name"
_PUT_TERM = """INSERT INTO clusters (name, uid, holder, term_until, reported) VALUES ($1, $2, $3, $4, 0)
    ON CONFLICT (name) DO UPDATE SET uid = excluded.uid, holder = excluded.holder, term_until = excluded.term_until"""
_CLOSE = "UPDATE clusters SET holder = '', term_until = 0 WHERE name = $1 AND uid = $2 AND holder = $3"
_BIND = """INSERT INTO clusters (name, uid, holder, term_until, reported) VALUES ($1, $2, '', 0, 0)
    ON CONFLICT (name) DO UPDATE SET uid = excluded.uid, holder = '', term_until = 0, reported = 0"""
_UNBIND = "DELETE FROM clusters WHERE name = $1"
_DROP_BOUNDS = "DELETE FROM bounds WHERE cluster = $1"
_SEQUENCES = "SELECT name, sequence FROM subnets WHERE network = $1 AND name IN $2"
_RAISE = "UPDATE subnets SET sequence = $1 WHERE network = $2 AND name = $3 AND sequence < $1"
_REPORTED = "UPDATE clusters SET reported = $1 WHERE name = $2"
_KNOWN_BY_CONTAINERS = """SELECT 1 FROM containers WHERE subnet IS NOT NULL AND (cluster = $1 OR cluster_uid = $2)
    LIMIT 1"""
_WITH_CONTAINERS = "SELECT DISTINCT cluster FROM containers WHERE subnet IS NOT NULL"
_COUNT = """SELECT cluster, cluster_uid, count(*) FROM containers WHERE subnet IS NOT NULL
    GROUP BY cluster, cluster_uid"""
_CONTAINERS_OF = (
    """SELECT id, cluster_uid FROM containers WHERE cluster = $1 AND subnet IS NOT NULL ORDER BY id"""
)
_END = "UPDATE store SET recovering_since = 0, reason = '' WHERE id = 1"


def open_term(claim: TermClaim, now: float) -> Script[OpenedTerm]:
    """Bind the name, refuse a caller that may not act for it, and open or renew the term."""
    ((recovery, since, reason, removed),) = yield Query(_LOCK_STORE)
    rows = yield Query(_READ_CLUSTERS)
    by_name = {name: (uid, reported) for name, uid, _holder, _until, reported in rows}
    bound, reported = by_name.get(claim.cluster, ("", 0))
    if is_anothers(bound, claim.cluster_uid):
        raise another_uid(claim.cluster, claim.cluster_uid, bound)
    held = [HeldTerm(holder, until) for _name, uid, holder, until, _ in rows if uid == claim.cluster_uid]
    if not may_open_term(claim.holder, held, now):
        other = next(term.holder for term in held if term.is_live(now) and term.holder != claim.holder)
        raise AnotherTerm(
            f"{other} acts for the cluster with uid {claim.cluster_uid} now, and two controllers must not: wait until "
            f"its term is over ({TERM_SECONDS:.0f} s without renewal); if it is of another cluster that was cloned from "
            "a backup, stop the podtide of one of the two"
        )
    yield Query(_PUT_TERM, (claim.cluster, claim.cluster_uid, claim.holder, now + TERM_SECONDS))
    behind, reached = yield from _compare(claim, removed)
    # A recovery that goes on waits for this cluster too, from now on, and need not begin anew.
    if not behind and not since and not held:
        behind = yield from _forgotten(claim, reached)
    if behind:
        reason = behind
        recovery, since = (yield from begin_recovery(reason, now)), now
    if not since:
        return OpenedTerm(reached=reached)
    return OpenedTerm(recovery=0 if reported == recovery else recovery, recovering=reason, reached=reached)


def _compare(claim: TermClaim, removed: int) -> Script[tuple[str, tuple[SeenVersion, ...]]]:
    """Why the store is behind what the cluster has seen, or ""; and the sequences of those subnets, raised to that.

    Only the subnets that the claim names are compared: the cost depends on the cluster, not on the allocator.
    """
    sequences = yield from _sequences(claim)
    reason = ""
    for seen in claim.seen:
        sequence = sequences.get((seen.network, seen.subnet), removed)
        if is_behind(sequence, seen.version):
            reason = behind_reason(claim.cluster, seen.subnet, seen.version, sequence)
            yield Query(_RAISE, (seen.version, seen.network, seen.subnet))
            if (seen.network, seen.subnet) in sequences:
                sequences[seen.network, seen.subnet] = seen.version
    return reason, tuple(SeenVersion(*place, sequence) for place, sequence in sorted(sequences.items()))


def _forgotten(claim: TermClaim, reached: tuple[SeenVersion, ...]) -> Script[str]:
    """Why the store must have lost a cluster of which it has neither name nor uid, or ""."""
    there = {(each.network, each.subnet) for each in reached}
    seen = [each for each in claim.seen if (each.network, each.subnet) in there and each.version]
    if not seen:
        return ""
    by_containers = yield Query(_KNOWN_BY_CONTAINERS, (claim.cluster, claim.cluster_uid))
    if not is_forgotten(is_known=bool(by_containers), seen=(each.version for each in seen)):
        return ""
    return f"cluster {claim.cluster} has seen version {seen[0].version} in subnet {seen[0].subnet}, and the store does not know it"


def _sequences(claim: TermClaim) -> Script[dict[tuple[str, str], int]]:
    """How far the subnets have come that a claim names, as far as they are there."""
    named: dict[str, list[str]] = {}
    for seen in claim.seen:
        named.setdefault(seen.network, []).append(seen.subnet)
    sequences: dict[tuple[str, str], int] = {}
    for network, subnets in named.items():
        rows = yield Query(_SEQUENCES, (network, subnets))
        sequences |= {(network, name): sequence for name, sequence in rows}
    return sequences


def behind_reason(cluster: str, subnet: str, seen: int, sequence: int) -> str:
    """The sentence that says that a cluster has seen more than the store has."""
    return (
        f"cluster {cluster} has seen version {seen} in subnet {subnet}, and the store has come to {sequence}"
    )


def close_term(claim: TermClaim) -> Script[None]:
    """End the holder's own term."""
    yield Query(_CLOSE, (claim.cluster, claim.cluster_uid, claim.holder))


def finish_report(cluster: str, uid: str, recovery: int, expected: Iterable[str]) -> Script[None]:
    """Record the report; with the last one the store grants again."""
    ((current, since, *_),) = yield Query(_LOCK_STORE)
    context = yield from read_context([cluster])
    context.refuse_another_cluster(cluster, uid)
    if not since:
        return
    if recovery != current:
        raise InvalidInput(
            f"the report of {cluster} is for recovery {recovery}, and {current} goes on: report anew"
        )
    yield Query(_REPORTED, (recovery, cluster))
    rows = yield Query(_READ_CLUSTERS)
    if not (yield from _awaited(rows, recovery, expected)):
        yield Query(_END)


def end_recovery() -> Script[None]:
    """End the recovery, whichever reports are missing."""
    yield Query(_END)


def _awaited(rows: Rows, recovery: int, expected: Iterable[str]) -> Script[tuple[str, ...]]:
    with_containers = {name for (name,) in (yield Query(_WITH_CONTAINERS))}
    names = {name for name, *_ in rows}
    reported = {name for name, *_, number in rows if number == recovery}
    return awaited_reports({*expected, *with_containers, *names}, reported)


def list_clusters(now: float, expected: Iterable[str]) -> Script[ClusterRegistry]:
    """All clusters, and whether the store recovers."""
    ((recovery, since, reason, _removed),) = yield Query(_LOCK_STORE.removesuffix(" /*lock*/"))
    rows = yield Query(_READ_CLUSTERS)
    counts = {(cluster, uid): count for cluster, uid, count in (yield Query(_COUNT))}
    awaited = (yield from _awaited(rows, recovery, expected)) if since else ()
    known = {name: (uid, HeldTerm(holder, until)) for name, uid, holder, until, _ in rows}
    names = {*known, *(cluster for cluster, _uid in counts), *expected}
    records = []
    for name in sorted(names):
        uid, term = known.get(name, ("", HeldTerm("", 0.0)))
        total = sum(count for (cluster, _), count in counts.items() if cluster == name)
        own = counts.get((name, uid), 0) if uid else 0
        without = counts.get((name, ""), 0)
        records.append(
            ClusterRecord(
                name=name,
                uid=uid,
                containers=own,
                of_other_uids=total - own - without,
                without_uid=without,
                holder=term.holder if term.is_live(now) else "",
                term_until=term.until if term.is_live(now) else 0.0,
                reported=name not in awaited,
            )
        )
    return ClusterRegistry(clusters=tuple(records), recovering=reason, since=since, awaited=awaited)


def move_cluster(name: str, uid: str) -> Script[None]:
    """Bind a name to another uid."""
    yield Query(_LOCK_STORE)
    yield Query(_BIND, (name, uid))


def containers_of(name: str, uid: str | None) -> Script[list[str]]:
    """The ids of a cluster's containers, newcomers that wait among them; with `uid`, of those that record it."""
    rows = yield Query(_CONTAINERS_OF, (name,))
    return [id_ for id_, recorded in rows if uid is None or recorded == uid]


def unbind(name: str, expected: Iterable[str]) -> Script[None]:
    """Free a name. If only its report was missing, the store grants again."""
    ((recovery, since, *_),) = yield Query(_LOCK_STORE)
    yield Query(_UNBIND, (name,))
    yield Query(_DROP_BOUNDS, (name,))
    rows = yield Query(_READ_CLUSTERS)
    if since and rows and not (yield from _awaited(rows, recovery, expected)):
        yield Query(_END)
