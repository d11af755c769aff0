"""How many pods the workloads of Kubernetes run at once, by their own fields: replicas, surge, parallelism, hostNetwork.

Only the fields that decide it are read. Defaults are those of Kubernetes: one replica, a surge of 25 % rounded up.
"""

from msgspec import Struct, field

from podtide.core.plan.count_or_percent import CountOrPercent, parse_count_or_percent

DEFAULT_SURGE = "25%"


class _Part(Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of a manifest; fields that it does not name are ignored."""


class WorkloadMeta(_Part, frozen=True, kw_only=True):
    """A workload's name."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""


class TemplateSpec(_Part, frozen=True, kw_only=True):
    """The part of a pod's spec that says whether it needs an address."""

    host_network: bool | None = False


class PodTemplate(_Part, frozen=True, kw_only=True):
    """The pods that a workload makes."""

    spec: TemplateSpec = TemplateSpec()


class RollingUpdate(_Part, frozen=True, kw_only=True):
    """How many pods there may be beyond the wanted number while they are replaced."""

    max_surge: int | str | None = None


class UpdateStrategy(_Part, frozen=True, kw_only=True):
    """How pods are replaced."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdate | None = None

    def surge(self, default: str | int, where: str) -> CountOrPercent:
        """The surge; none where pods are deleted before new ones are made."""
        if self.type != "RollingUpdate":
            return CountOrPercent()
        stated = self.rolling_update.max_surge if self.rolling_update else None
        return parse_count_or_percent(default if stated is None else stated, f"{where} maxSurge")


class ReplicatedSpec(_Part, frozen=True, kw_only=True):
    """Of a Deployment, ReplicaSet, StatefulSet, DaemonSet or ReplicationController."""

    replicas: int | None = 1
    selector: dict[str, object] | None = None
    strategy: UpdateStrategy = UpdateStrategy()
    update_strategy: UpdateStrategy = UpdateStrategy()
    template: PodTemplate = PodTemplate()


class JobSpec(_Part, frozen=True, kw_only=True):
    """Of a Job."""

    parallelism: int | None = 1
    completions: int | None = None
    suspend: bool | None = False
    template: PodTemplate = PodTemplate()


class JobTemplate(_Part, frozen=True, kw_only=True):
    """The Jobs that a CronJob makes."""

    spec: JobSpec = JobSpec()


class CronJobSpec(_Part, frozen=True, kw_only=True):
    """Of a CronJob."""

    suspend: bool | None = False
    job_template: JobTemplate = JobTemplate()


class ScaleTarget(_Part, frozen=True, kw_only=True):
    """What an autoscaler scales."""

    kind: str = ""
    name: str = ""


class AutoscalerSpec(_Part, frozen=True, kw_only=True):
    """Of a HorizontalPodAutoscaler."""

    max_replicas: int
    scale_target_ref: ScaleTarget = ScaleTarget()


class Manifest(_Part, frozen=True, kw_only=True):
    """Any object, before its kind is known."""

    api_version: str = ""
    kind: str = ""
    metadata: WorkloadMeta = WorkloadMeta()


class ReplicatedManifest(Manifest, frozen=True, kw_only=True):
    """An object with replicas and a template."""

    spec: ReplicatedSpec = ReplicatedSpec()


class JobManifest(Manifest, frozen=True, kw_only=True):
    """A Job."""

    spec: JobSpec = JobSpec()


class CronJobManifest(Manifest, frozen=True, kw_only=True):
    """A CronJob."""

    spec: CronJobSpec = CronJobSpec()


class PodManifest(Manifest, frozen=True, kw_only=True):
    """A Pod."""

    spec: TemplateSpec = TemplateSpec()


class AutoscalerManifest(Manifest, frozen=True, kw_only=True):
    """A HorizontalPodAutoscaler: it makes no pods, but more replicas of another workload."""

    spec: AutoscalerSpec


class CountedWorkload(Struct, frozen=True, kw_only=True):
    """What one workload runs at once."""

    kind: str
    name: str
    namespace: str
    pods: int = 0
    """Pods in the long run; of a DaemonSet on each node."""
    surge: CountOrPercent = CountOrPercent()
    per_node: bool = False
    host_network: bool = False
    labels: dict[str, str] = field(default_factory=dict)
    """The labels by which its running pods are found; none where that takes more than labels."""

    def at_rest(self, nodes: int) -> int:
        """Pods that need an address, on so many nodes."""
        return 0 if self.host_network else self.pods * (nodes if self.per_node else 1)

    def at_once(self, nodes: int) -> int:
        """The same while they are replaced."""
        steady = self.at_rest(nodes)
        return steady + self.surge.of(steady)


def replicated(manifest: ReplicatedManifest, where: str) -> CountedWorkload:
    """A Deployment, StatefulSet, ReplicaSet, ReplicationController or DaemonSet."""
    spec, kind = manifest.spec, manifest.kind
    surge = CountOrPercent()
    if kind == "Deployment":
        surge = spec.strategy.surge(DEFAULT_SURGE, where)
    elif kind == "DaemonSet":
        surge = spec.update_strategy.surge(0, where)
    replicas = 1 if spec.replicas is None else spec.replicas
    return _workload(
        manifest,
        spec.template.spec,
        pods=1 if kind == "DaemonSet" else replicas,
        surge=surge,
        labels=_labels(spec.selector or {}),
    )


def job(manifest: JobManifest) -> CountedWorkload:
    """A Job: as many pods as run in parallel, and no more than are to complete."""
    return _workload(manifest, manifest.spec.template.spec, pods=_parallel(manifest.spec))


def cron_job(manifest: CronJobManifest) -> CountedWorkload:
    """A CronJob: the pods of one run."""
    run = manifest.spec.job_template.spec
    pods = 0 if manifest.spec.suspend else _parallel(run)
    return _workload(manifest, run.template.spec, pods=pods)


def pod(manifest: PodManifest) -> CountedWorkload:
    """One pod."""
    return _workload(manifest, manifest.spec, pods=1)


def _parallel(spec: JobSpec) -> int:
    if spec.suspend:
        return 0
    parallel = 1 if spec.parallelism is None else spec.parallelism
    return parallel if spec.completions is None else min(parallel, spec.completions)


def _labels(selector: dict[str, object]) -> dict[str, str]:
    """The labels of a selector that consists of labels alone."""
    labels = selector.get("matchLabels")
    if not isinstance(labels, dict) or selector.get("matchExpressions"):
        return {}
    return {str(key): str(value) for key, value in labels.items()}


def _workload(
    manifest: Manifest,
    spec: TemplateSpec,
    *,
    pods: int,
    surge: CountOrPercent | None = None,
    labels: dict[str, str] | None = None,
) -> CountedWorkload:
    return CountedWorkload(
        kind=manifest.kind,
        name=manifest.metadata.name or manifest.metadata.generate_name,
        namespace=manifest.metadata.namespace,
        pods=pods,
        surge=surge or CountOrPercent(),
        per_node=manifest.kind == "DaemonSet",
        host_network=bool(spec.host_network),
        labels=labels or {},
    )
