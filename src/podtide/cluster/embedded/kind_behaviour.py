"""Where the kinds every cluster has behave unlike custom resources, as kube-apiserver 1.36 has it.

Custom resources all behave alike, and so does whatever this table does not name.
"""

from typing import Any

from msgspec import Struct

from podtide.resources.base import Api


class KindBehaviour(Struct, frozen=True, kw_only=True):
    """How the API server treats a kind."""

    counts_generations: bool = True
    replace_needs_version: bool = True
    """A replace without a resource version is refused, instead of overwriting whatever is there."""
    replace_creates: bool = False
    """A replace of an object that is not there makes it."""
    keeps_first_status: bool = False
    """A status sent with create is taken, though later only the status subresource takes one."""
    first_status: dict[str, Any] = {}
    """The status the server gives a new object, whatever was sent."""
    knows_status_owners: bool = True
    """Whether managedFields cover the status. For the record only: a status is never applied."""
    waits_for_kubelet: bool = False
    """Once it is bound to a node, and until it is finished, a delete only marks it: its kubelet ends it."""


_CUSTOM_RESOURCE = KindBehaviour()
_BUILT_IN = {
    ("", "Pod"): KindBehaviour(
        replace_needs_version=False,
        first_status={"phase": "Pending"},
        knows_status_owners=False,
        waits_for_kubelet=True,
    ),
    ("", "Node"): KindBehaviour(
        counts_generations=False, replace_needs_version=False, keeps_first_status=True
    ),
    ("", "Event"): KindBehaviour(counts_generations=False, replace_needs_version=False, replace_creates=True),
    ("", "Namespace"): KindBehaviour(
        counts_generations=False, replace_needs_version=False, first_status={"phase": "Active"}
    ),
    ("coordination.k8s.io", "Lease"): KindBehaviour(counts_generations=False, replace_creates=True),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): KindBehaviour(
        first_status={
            "conditions": [
                {"type": "NamesAccepted", "status": "True"},
                {"type": "Established", "status": "True"},
            ]
        }
    ),
}


def behaviour_of(api: Api) -> KindBehaviour:
    """How the API server treats this kind."""
    return _BUILT_IN.get((api.group, api.kind), _CUSTOM_RESOURCE)
