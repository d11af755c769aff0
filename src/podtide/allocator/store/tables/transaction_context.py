"""What a transaction has to know beside its subnet: whether the store recovers, and the uid of each cluster name."""

from collections.abc import Sequence
from typing import cast

from msgspec import Struct

from podtide.allocator.errors import AnotherCluster, StoreRecovering
from podtide.allocator.store.script import Query, Rows, Script
from podtide.core.subnet.cluster_identity import is_anothers

_STORE = "SELECT recovery, recovering_since, reason FROM store WHERE id = 1"
_READ = """SELECT store.recovery, store.recovering_since, store.reason, clusters.name, clusters.uid
    FROM store LEFT JOIN clusters ON clusters.name IN $1 WHERE store.id = 1"""
_BEGIN = """UPDATE store SET recovery = CASE WHEN $3 > recovery THEN $3 ELSE recovery + 1 END,
    recovering_since = $1, reason = $2 WHERE id = 1 RETURNING recovery"""


class TransactionContext(Struct):
    """The state of the store, and the uids of clusters, when the transaction began."""

    recovery: int
    """The number of the recovery that goes on; 0 when the store grants."""
    reason: str
    uids: dict[str, str]
    """The uids that names belong to."""

    def refuse_while_recovering(self) -> None:
        """Raise StoreRecovering while the store recovers."""
        if self.recovery:
            raise recovering(self.reason)

    def refuse_another_cluster(self, cluster: str, uid: str, recorded: str = "") -> None:
        """Raise AnotherCluster unless the name, and what was recorded, belong to this uid."""
        bound = self.uids.get(cluster, "")
        if is_anothers(bound, uid):
            raise another_uid(cluster, uid, bound)
        if is_anothers(recorded, uid):
            raise another_recorded(cluster, uid, recorded)

    def begin_recovery(self, reason: str, now: float) -> Script[None]:
        """Begin a recovery: grant nothing from now on."""
        self.recovery = yield from begin_recovery(reason, now)
        self.reason = reason


def read_context(clusters: Sequence[str] = ()) -> Script[TransactionContext]:
    """The state of the store now, with the uids of these clusters."""
    rows: Rows
    if clusters:
        rows = yield Query(_READ, (list(clusters),))
    else:
        rows = [(*row, None, None) for row in (yield Query(_STORE))]
    number, since, reason = rows[0][:3]
    return TransactionContext(number if since else 0, reason, {name: uid for *_, name, uid in rows if name})


def begin_recovery(reason: str, now: float) -> Script[int]:
    """Begin a recovery: grant nothing from now on. Returns the recovery's number.

    One that is going on begins anew: the store may have gone back to a time when it was recovering, and what was
    reported then is stale.
    """
    ((number,),) = yield Query(_BEGIN, (now, reason, recovery_number(now)))
    return cast("int", number)


def recovery_number(now: float) -> int:
    """The number of a recovery that begins now.

    A counter would be used again by a store that goes back once more, and reports to the forgotten recovery would
    count.
    """
    return int(now * 1_000)


def recovering(reason: str) -> StoreRecovering:
    """The error while the store recovers."""
    return StoreRecovering(
        f"the allocator grants nothing, because its store went back ({reason}), until every cluster has reported what "
        "its nodes hold: `podtide allocator cluster list` shows which are awaited"
    )


def another_recorded(cluster: str, uid: str, recorded: str) -> AnotherCluster:
    """The error for a container that records another uid, although the cluster has its name."""
    return AnotherCluster(
        f"the container is of the cluster with uid {recorded}, and this is {uid or 'one without uid'}: "
        f"if that cluster is gone for ever, run `podtide allocator cluster forget {cluster} --uid {recorded}`"
    )


def another_uid(cluster: str, uid: str, bound: str) -> AnotherCluster:
    """The error for a cluster under a name that is bound to another uid."""
    return AnotherCluster(
        f"the cluster name {cluster} belongs to the cluster whose namespace kube-system has uid {bound}, and this one's "
        f"has {uid or 'none'}: give this cluster another --cluster-name, or correct its kubeconfig; if the name is to be "
        f"this cluster's, run `podtide allocator cluster move {cluster} --to-uid {uid or 'UID'}`"
    )
