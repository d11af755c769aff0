"""The columns of `kubectl get`: those that a kind's CRD has, and for kinds without one the few that matter here."""

from podtide.resources.base import AGE, Api, Column

_BUILT_IN: dict[tuple[str, str], tuple[Column, ...]] = {
    ("", "Pod"): (
        Column(name="Status", type="string", json_path=".status.phase"),
        AGE,
        Column(name="IP", type="string", json_path=".status.podIP", priority=1),
        Column(name="Node", type="string", json_path=".spec.nodeName", priority=1),
    ),
    ("", "Event"): (
        Column(name="Last Seen", type="date", json_path=".lastTimestamp"),
        Column(name="Type", type="string", json_path=".type"),
        Column(name="Reason", type="string", json_path=".reason"),
        Column(name="Kind", type="string", json_path=".involvedObject.kind"),
        Column(name="Object", type="string", json_path=".involvedObject.name"),
        Column(name="Message", type="string", json_path=".message"),
    ),
    ("coordination.k8s.io", "Lease"): (
        Column(name="Holder", type="string", json_path=".spec.holderIdentity"),
        AGE,
    ),
}


def columns_of(api: Api) -> tuple[Column, ...]:
    """The columns after the name."""
    return api.columns or _BUILT_IN.get((api.group, api.kind), (AGE,))
