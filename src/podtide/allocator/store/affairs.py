"""What a transaction has to know beside its subnet: whether the store recovers, and to whom clusters' names belong."""

from collections.abc import Sequence

from msgspec import Struct

from podtide.allocator.port import AnotherCluster, StoreRecovering
from podtide.allocator.store.script import Query, Rows, Script, among
from podtide.core.cluster_identity import is_anothers

_STORE = "SELECT recovery, recovering_since, reason FROM store WHERE id = 1"
_READ = """SELECT store.recovery, store.recovering_since, store.reason, clusters.name, clusters.uid
    FROM store LEFT JOIN clusters ON clusters.name IN {} WHERE store.id = 1"""
_BEGIN = """UPDATE store SET recovery = recovery + 1, recovering_since = $1, reason = $2
    WHERE id = 1 AND recovering_since = 0 RETURNING recovery"""


_NUMBER = "SELECT recovery FROM store WHERE id = 1"


class Affairs(Struct):
    """As they were when the transaction began."""

    recovery: int
    """The number of the recovery that goes on; 0 when the store grants."""
    reason: str
    uids: dict[str, str]
    """The uids that names belong to."""

    def refuse_while_recovering(self) -> None:
        """StoreRecovering while the store recovers."""
        if self.recovery:
            raise recovering(self.reason)

    def refuse_another_cluster(self, cluster: str, uid: str, recorded: str = "") -> None:
        """AnotherCluster unless the name, and what was recorded, are this uid's."""
        bound = self.uids.get(cluster, "")
        if is_anothers(bound, uid):
            raise another_uid(cluster, uid, bound)
        if is_anothers(recorded, uid):
            raise AnotherCluster(
                f"the container is of the cluster with uid {recorded}, and this is {uid or 'one without uid'}: "
                f"if that cluster is gone for ever, run `podtide allocator cluster forget {cluster} --uid {recorded}`"
            )

    def begin_recovery(self, reason: str, now: float) -> Script[None]:
        """Grant nothing from now on, unless that is so already."""
        self.recovery = yield from begin_recovery(reason, now)
        self.reason = self.reason or reason


def read_affairs(clusters: Sequence[str] = ()) -> Script[Affairs]:
    """How they are now, with the uids of these clusters."""
    rows: Rows
    if clusters:
        places, values = among(clusters, first=1)
        rows = yield Query(_READ.format(places), values)
    else:
        rows = [(*row, None, None) for row in (yield Query(_STORE))]
    number, since, reason = rows[0][:3]
    return Affairs(number if since else 0, reason, {name: uid for *_, name, uid in rows if name})


def begin_recovery(reason: str, now: float) -> Script[int]:
    """Grant nothing from now on; the number of the recovery, which may go on already."""
    rows = yield Query(_BEGIN, (now, reason))
    if not rows:
        rows = yield Query(_NUMBER)
    number: int = rows[0][0]
    return number


def recovering(reason: str) -> StoreRecovering:
    """The refusal of a store that recovers."""
    return StoreRecovering(
        f"the allocator grants nothing, because its store went back ({reason}), until every cluster has reported what "
        "its nodes hold: `podtide allocator cluster list` shows which are awaited"
    )


def another_uid(cluster: str, uid: str, bound: str) -> AnotherCluster:
    """The refusal of a cluster under a name that is not its own."""
    return AnotherCluster(
        f"the cluster name {cluster} belongs to the cluster whose namespace kube-system has uid {bound}, and this one's "
        f"has {uid or 'none'}: give this cluster another --cluster-name, or correct its kubeconfig; if the name is to be "
        f"this cluster's, run `podtide allocator cluster move {cluster} --to-uid {uid or 'UID'}`"
    )
