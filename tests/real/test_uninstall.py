"""What a real API server tells of who wrote an object: by that `podtide uninstall` knows what is podtide's."""

import pytest

from control_plane.cluster import ControlPlane
from podtide.cluster.kubernetes import KubernetesCluster, find_access
from podtide.resources.base import ObjectMeta
from podtide.resources.installed_kinds import INSTALLED_CUSTOM_KINDS
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec
from podtide.runtime.clock import SystemClock
from podtide.runtime.randomness import system_randomness

RECORDED_POOL = next(kind for kind in INSTALLED_CUSTOM_KINDS if kind.api.kind == IPPool.api.kind)


def pool(namespace: str, *, version: str = "", **held: str) -> IPPool:
    entries = {key.removeprefix("at_"): IPAllocation(id="s", podref=pod) for key, pod in held.items()}
    place = ObjectMeta(name="10.0.0.0-24", namespace=namespace, resource_version=version)
    return IPPool(metadata=place, spec=IPPoolSpec(range="10.0.0.0/24", allocations=entries))


@pytest.mark.real_time
async def test_who_wrote_a_pool_is_told(control_plane: ControlPlane, namespace: str) -> None:
    kubeconfig = control_plane.kubeconfig
    access = find_access(kubeconfig=kubeconfig, context="", environment={}, home=kubeconfig.parent)
    async with KubernetesCluster(access, clock=SystemClock(), randomness=system_randomness()) as cluster:
        made = await cluster.create(pool(namespace), manager="whereabouts")
        changed = pool(namespace, version=made.metadata.resource_version, at_1="default/web")
        await cluster.replace(changed, manager="podtide-agent")
        [read] = (await cluster.list(RECORDED_POOL, namespace)).items
    assert {each.manager for each in read.metadata.managed_fields} == {"whereabouts", "podtide-agent"}
