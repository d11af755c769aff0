"""The kinds of what an installation puts into a cluster, as far as it takes to find and remove it.

Of most of them only metadata is read. Who wrote an object (`managedFields`) is read here and nowhere else: podtide's own
kinds are other programs' too, and what podtide did not write alone is not podtide's to remove.
"""

import types
from typing import Any, ClassVar

from msgspec import field

from podtide.resources.base import Api, ObjectMeta, Part, Resource
from podtide.resources.kinds import PODTIDE_KINDS
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import NAME_LABEL, PODTIDE


class FieldsOfManager(Part, frozen=True, kw_only=True):
    """A field manager of an object."""

    merge_key: ClassVar[str | None] = "manager"

    manager: str = ""


class InstalledMeta(ObjectMeta, frozen=True, kw_only=True):
    """Metadata, with who wrote the object."""

    managed_fields: list[FieldsOfManager] = field(default_factory=list)


class Installed(Resource, frozen=True, kw_only=True):
    """An object of which only the metadata is read. It is not written."""

    metadata: InstalledMeta = InstalledMeta()

    @property
    def is_labelled(self) -> bool:
        """Whether it has podtide's label."""
        return self.metadata.labels.get(NAME_LABEL) == PODTIDE


def installed_kind(api: Api) -> type[Installed]:
    """The kind of this API, as objects of which only the metadata is read."""
    kind: type[Installed] = types.new_class(
        api.kind,
        (Installed,),
        {"frozen": True, "kw_only": True},
        lambda body: body.update(api=api, __module__=__name__, __doc__=f"A {api.kind}."),
    )
    return kind


def _built_in(
    group: str, kind: str, plural: str, *, version: str = "v1", namespaced: bool = True
) -> type[Installed]:
    return installed_kind(
        Api(
            group=group,
            version=version,
            kind=kind,
            plural=plural,
            namespaced=namespaced,
            keeps_unknown=False,
        )
    )


def _of(kind: type[Resource]) -> type[Installed]:
    api = kind.api
    return _built_in(api.group, api.kind, api.plural, version=api.version, namespaced=api.namespaced)


class LabelSelector(Part, frozen=True, kw_only=True):
    """Which pods are a DaemonSet's."""

    match_labels: dict[str, str] = field(default_factory=dict)


class DaemonSetSpec(Part, frozen=True, kw_only=True):
    """The pods of a DaemonSet."""

    selector: LabelSelector = LabelSelector()
    template: dict[str, Any] = field(default_factory=dict)
    """The pod as it is on the wire: parts of it are copied, and not understood."""


class DaemonSetStatus(Part, frozen=True, kw_only=True):
    """How far a DaemonSet is."""

    observed_generation: int = 0
    desired_number_scheduled: int = 0
    number_ready: int = 0


class DaemonSet(Resource, frozen=True, kw_only=True):
    """A DaemonSet: the agents, or what removes their files."""

    api: ClassVar[Api] = Api(
        group="apps",
        version="v1",
        kind="DaemonSet",
        plural="daemonsets",
        namespaced=True,
        status_subresource=True,
        keeps_unknown=False,
    )

    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


_RIGHTS = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"

InstalledDefinition = _built_in(
    "apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
InstalledLease = _of(Lease)

CHART_KINDS: tuple[type[Installed], ...] = (
    # Policies first: one whose parameters are of a kind that is gone would refuse all Leases.
    _built_in(
        _ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", namespaced=False
    ),
    _built_in(_ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False),
    _built_in(
        _ADMISSION, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", namespaced=False
    ),
    _built_in(_ADMISSION, "MutatingAdmissionPolicy", "mutatingadmissionpolicies", namespaced=False),
    _built_in("apps", "Deployment", "deployments"),
    _built_in("apps", "StatefulSet", "statefulsets"),
    _of(DaemonSet),
    _built_in("batch", "Job", "jobs"),
    _built_in("", "Pod", "pods"),
    _built_in("", "Service", "services"),
    _built_in("policy", "PodDisruptionBudget", "poddisruptionbudgets"),
    _built_in("monitoring.coreos.com", "ServiceMonitor", "servicemonitors"),
    _built_in("monitoring.coreos.com", "PrometheusRule", "prometheusrules"),
    _built_in("", "ConfigMap", "configmaps"),
    _built_in("", "Secret", "secrets"),
    _built_in("", "PersistentVolumeClaim", "persistentvolumeclaims"),
    _built_in(_RIGHTS, "RoleBinding", "rolebindings"),
    _built_in(_RIGHTS, "Role", "roles"),
    _built_in(_RIGHTS, "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    _built_in(_RIGHTS, "ClusterRole", "clusterroles", namespaced=False),
    _built_in("", "ServiceAccount", "serviceaccounts"),
    InstalledLease,
)
"""What the chart makes, in the order in which it is removed."""

INSTALLED_CUSTOM_KINDS: tuple[type[Installed], ...] = tuple(_of(kind) for kind in PODTIDE_KINDS)
"""podtide's kinds, of which objects may be other programs'."""
