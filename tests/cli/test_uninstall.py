"""`podtide uninstall` on an embedded cluster: a stand-in for kubelets and garbage collection ends and starts pods."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from cli.conftest import Run
from cli.drawn_cluster import DrawnCluster
from podtide.allocator.containers import Wish
from podtide.allocator.store import open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.allocator.terms import TermClaim
from podtide.cli.installation.uninstall.carrying_out import NotYet
from podtide.cli.installation.uninstall.command import Refused, UninstallOptions, uninstall_from
from podtide.cli.installation.uninstall.remover import REMOVER, held_back, let_go, remover
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.port import NotFound, Patch
from podtide.cluster.served import serving
from podtide.cluster.served.kinds import SERVED_KINDS, CustomResourceDefinition, DefinedNames
from podtide.cluster.served.kinds import CustomResourceDefinitionSpec as DefinitionSpec
from podtide.cluster.served.kubeconfig import write_kubeconfig
from podtide.controller.nodes.config_ownership import bound
from podtide.core.removal import RemovalWish
from podtide.resources.base import ObjectMeta, OwnerReference, Resource
from podtide.resources.installed_kinds import CHART_KINDS, DaemonSet, DaemonSetSpec, Installed, installed_kind
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec
from podtide.resources.kinds import ALL_KINDS, PODTIDE_KINDS
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import (
    COMPONENT_LABEL,
    NAME_LABEL,
    NODE_ANNOTATION,
    PODTIDE,
    SYSTEM_NAMESPACE,
)
from podtide.resources.namespace import Namespace
from podtide.resources.network_attachment import (
    NetworkAttachmentDefinition,
    NetworkAttachmentDefinitionSpec,
)
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod, PodPhase
from podtide.runtime.clock import SystemClock
from podtide.runtime.listening import ListenAddress

MADE_BY_THE_CHART = tuple(
    kind for kind in CHART_KINDS if kind.api.kind not in {*(each.api.kind for each in ALL_KINDS), "DaemonSet"}
)
STORED_DAEMON_SET = installed_kind(structs.replace(DaemonSet.api))
"""An embedded cluster checks what its structs name: this leaves a pod's template as it is."""
HELM = "helm"
ENDING_SECONDS = 0.7
"""How long pods take to end after what made them was deleted."""
OPTIONS = UninstallOptions(wish=RemovalWish(), image="", dry_run=False, timeout_seconds=60.0)
FORCED = structs.replace(OPTIONS, wish=RemovalWish(force=True))
AGENT_POD = {
    "containers": [{"name": "agent", "image": "podtide:1", "imagePullPolicy": "Never"}],
    "tolerations": [{"operator": "Exists"}],
    "volumes": [
        {"name": "state", "hostPath": {"path": "/var/lib/podtide"}},
        {"name": "cni-bin", "hostPath": {"path": "/usr/lib/cni"}},
    ],
}


def meta(name: str, component: str = "", *, kind: type[Resource] | None = None, **more: Any) -> ObjectMeta:
    namespaced = kind is None or kind.api.namespaced
    labels = {NAME_LABEL: PODTIDE, COMPONENT_LABEL: component} if component else {}
    return ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE if namespaced else "", labels=labels, **more)


class Installation(DrawnCluster):
    """podtide in an embedded cluster, as the chart puts it there."""

    def __init__(self) -> None:
        super().__init__(EmbeddedCluster(kinds=[*SERVED_KINDS, *MADE_BY_THE_CHART, STORED_DAEMON_SET]))
        self.remover_works = True
        self.ending_seconds = ENDING_SECONDS
        self._ending: dict[str, float] = {}

    async def install(self) -> None:
        release = {"meta.helm.sh/release-name": "tide"}
        for kind in MADE_BY_THE_CHART:
            place = meta("podtide-controller", "controller", kind=kind, annotations=release)
            await self.cluster.create(_installed(kind, place), manager=HELM)
            if kind.api.kind != "PersistentVolumeClaim":
                await self.cluster.create(_installed(kind, meta("somebodys", kind=kind)), manager=HELM)
        for api in (each.api for each in PODTIDE_KINDS):
            names = DefinedNames(kind=api.kind, plural=api.plural)
            place = ObjectMeta(name=f"{api.plural}.{api.group}", labels={NAME_LABEL: PODTIDE})
            spec = DefinitionSpec(group=api.group, names=names)
            await self.cluster.create(CustomResourceDefinition(metadata=place, spec=spec), manager=HELM)
        await self.cluster.create(Lease(metadata=meta("podtide-controller", "controller")), manager=HELM)
        await self.cluster.create(Lease(metadata=meta("somebodys")), manager="somebody")
        pools = meta("blue-node-a", annotations={NODE_ANNOTATION: "node-a"})
        await self.cluster.create(Lease(metadata=pools), manager="podtide-agent")
        template = {"spec": AGENT_POD}
        agents = DaemonSet(metadata=meta("podtide-agent", "agent"), spec=DaemonSetSpec(template=template))
        await self.cluster.create(agents, manager=HELM)
        node = await self.node("node-a")
        for number, component in enumerate(("agent", "controller")):
            await self.own_pod(f"podtide-{component}-{number}", component, node)
        config = bound(NodeNetworkConfig(metadata=meta("node-a")), node)
        await self.cluster.create(config, manager="podtide-controller")
        await self.pool("10.0.0.0-24", "podtide-agent")

    async def own_pod(self, name: str, component: str, node: Node) -> None:
        """A pod of podtide's. Its owner is the Node, which stays: the pod's end is for `_follow` to say."""
        owner = OwnerReference(api_version="v1", kind="Node", name="node-a", uid=node.metadata.uid)
        await self.cluster.create(
            Pod(metadata=meta(name, component, owner_references=[owner])), manager="kube-controller-manager"
        )

    async def pool(self, name: str, writer: str, **held: str) -> None:
        entries = {key.removeprefix("at_"): IPAllocation(id="s", podref=pod) for key, pod in held.items()}
        spec = IPPoolSpec(range="10.0.0.0/24", allocations=entries)
        await self.cluster.create(IPPool(metadata=meta(name), spec=spec), manager=writer)

    async def holding_pod(self) -> None:
        """A pod with an address of node-a's NodeNetworkConfig."""
        await self.grant("10.1.0.10")
        await self.pod("web", "node-a", "10.1.0.10")

    async def grant(self, address: str) -> None:
        """node-a has this address for pods."""
        config = await self.cluster.get(NodeNetworkConfig, "node-a", SYSTEM_NAMESPACE)
        drawn = await DrawnCluster(EmbeddedCluster(kinds=SERVED_KINDS)).config("node-a", granted=[address])
        await self.cluster.replace_status(
            structs.replace(config, status=drawn.status), manager="podtide-controller"
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """What a control plane and kubelets would do: pods follow their controllers, and removers become ready."""
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            if not task.cancel():
                task.result()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(0.1)
            await self._follow("podtide-agent", "agent", DaemonSet)
            await self._follow("podtide-controller", "controller", _of("Deployment"))
            await self._follow(REMOVER, "uninstall", DaemonSet)
            if not self.remover_works:
                continue
            for made in (await self.cluster.list(DaemonSet)).items:
                is_held = "podtide.io/uninstall" in made.spec.template["spec"].get("nodeSelector", {})
                count = 0 if is_held else 1
                status = structs.replace(
                    made.status,
                    observed_generation=made.metadata.generation,
                    desired_number_scheduled=count,
                    number_ready=count,
                )
                if made.metadata.name == REMOVER and status != made.status:
                    agents = [pod for pod in self.own_pods() if "agent" in pod]
                    assert is_held or not agents, "an agent that runs would put its files back"
                    await self.cluster.replace_status(structs.replace(made, status=status), manager="kubelet")

    async def _follow(self, name: str, component: str, kind: type[Resource]) -> None:
        try:
            await self.cluster.get(kind, name, SYSTEM_NAMESPACE)
        except NotFound:
            since = self._ending.setdefault(name, asyncio.get_running_loop().time())
            if asyncio.get_running_loop().time() < since + self.ending_seconds:
                return
            for pod in (await self.cluster.list(Pod, labels=f"{COMPONENT_LABEL}={component}")).items:
                await self.cluster.delete(Pod, pod.metadata.name, SYSTEM_NAMESPACE)

    def own_pods(self) -> list[str]:
        return [pod.metadata.name for pod in self.cluster.items(Pod) if NAME_LABEL in pod.metadata.labels]

    def left(self) -> list[str]:
        """All that has a sign of podtide."""
        kinds: tuple[type[Resource], ...] = (
            *MADE_BY_THE_CHART,
            *PODTIDE_KINDS,
            Lease,
            Pod,
            STORED_DAEMON_SET,
            CustomResourceDefinition,
        )
        return [
            f"{kind.api.kind} {item.metadata.name}"
            for kind in kinds
            for item in self.cluster.items(kind)
            if item.metadata.name not in {"somebodys", "web"}
        ]


def _installed(kind: type[Installed], place: ObjectMeta) -> Installed:
    return kind(metadata=place)  # type: ignore[arg-type]  # what it is stored with


def _of(kind: str) -> type[Installed]:
    return next(each for each in CHART_KINDS if each.api.kind == kind)


async def installed() -> Installation:
    installation = Installation()
    await installation.install()
    return installation


async def uninstall(installation: Installation, options: UninstallOptions = OPTIONS) -> None:
    async with installation.running():
        await uninstall_from(installation.cluster, None, options)


async def test_nothing_is_left_but_the_database_and_what_is_not_podtides(
    capsys: pytest.CaptureFixture[str],
) -> None:
    installation = await installed()
    await uninstall(installation)
    assert installation.left() == ["PersistentVolumeClaim podtide-controller"]
    kinds: tuple[type[Resource], ...] = (*MADE_BY_THE_CHART, Lease)
    somebodys = [
        kind.api.kind
        for kind in kinds
        for item in installation.cluster.items(kind)
        if item.metadata.name == "somebodys"
    ]
    assert len(somebodys) == len(MADE_BY_THE_CHART)
    out = capsys.readouterr().out
    assert "1 node is clean" in out
    assert "stays: PersistentVolumeClaim kube-system/podtide-controller" in out
    assert out.endswith("helm uninstall tide --namespace kube-system\n")


async def test_the_database_goes_when_that_is_asked_for() -> None:
    installation = await installed()
    await uninstall(installation, structs.replace(OPTIONS, wish=RemovalWish(delete_database=True)))
    assert installation.left() == []


async def test_what_placement_wrote_on_nodes_goes_too_and_is_shown_by_a_dry_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    installation = await installed()
    published = {"podtide.io/ipv4": "30"}
    changes = {"status": {"capacity": published, "allocatable": published}}
    await installation.cluster.patch(
        Patch(Node, "node-a", changes=changes, status=True), manager="podtide-controller"
    )
    taints = [{"key": "podtide.io/no-addresses", "effect": "NoSchedule"}]
    await installation.cluster.patch(
        Patch(Node, "node-a", changes={"spec": {"taints": taints}}), manager="podtide-controller"
    )
    await uninstall(installation, structs.replace(OPTIONS, dry_run=True))
    shown = capsys.readouterr().out
    assert "would remove: resources and the taint of podtide's on 1 Node (node-a)\n" in shown
    await uninstall(installation)
    [node] = installation.cluster.items(Node)
    assert (node.status.capacity, node.status.allocatable, node.spec.taints) == ({}, {}, [])
    assert "removed what placement wrote from 1 node\n" in capsys.readouterr().out


async def test_a_second_run_finds_nothing_left(capsys: pytest.CaptureFixture[str]) -> None:
    installation = await installed()
    await uninstall(installation)
    capsys.readouterr()
    await uninstall(installation)
    assert capsys.readouterr().out.startswith("nothing of podtide's is left in the cluster\n")


async def test_it_is_refused_while_a_pod_has_an_address_and_nothing_is_changed() -> None:
    installation = await installed()
    await installation.holding_pod()
    before = installation.cluster.server.store.version
    with pytest.raises(Refused, match=r"1 pod holds addresses of podtide's \(default/web on node-a\)"):
        await uninstall(installation)
    assert installation.cluster.server.store.version == before


async def test_it_is_refused_while_a_pod_is_in_a_pool_of_podtides() -> None:
    installation = await installed()
    await installation.pool("blue", "podtide-agent", at_1="default/web")
    await installation.pod("web", "node-a", "192.168.0.1")
    with pytest.raises(Refused, match="default/web on node-a"):
        await uninstall(installation)


async def test_pods_of_others_that_ended_or_are_on_their_nodes_network_do_not_hold_it_up() -> None:
    installation = await installed()
    await installation.pool("10.9.0.0-24", "whereabouts", at_1="default/theirs")
    await installation.pod("theirs", "node-a", "192.168.0.1")
    await installation.grant("10.1.0.10")
    await installation.pod("done", "node-a", "10.1.0.10", phase=PodPhase.SUCCEEDED)
    await installation.pod("system", "node-a", "10.1.0.10", host_network=True)
    await uninstall(installation)
    assert installation.cluster.items(NodeNetworkConfig) == []


async def test_it_can_be_forced(capsys: pytest.CaptureFixture[str]) -> None:
    installation = await installed()
    await installation.holding_pod()
    await uninstall(installation, FORCED)
    assert installation.left() == ["PersistentVolumeClaim podtide-controller"]
    assert "left without the plugin: pods default/web\n" in capsys.readouterr().out


async def test_a_dry_run_shows_and_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    installation = await installed()
    await installation.holding_pod()
    before = installation.cluster.server.store.version
    await uninstall(installation, structs.replace(OPTIONS, dry_run=True))
    assert installation.cluster.server.store.version == before
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("refused: 1 pod holds addresses")
    assert lines[1].startswith("would remove: the files of podtide's on every node with an agent")
    for gone in (
        "Lease kube-system/podtide-controller",
        "NodeNetworkConfig kube-system/node-a",
        "Lease kube-system/blue-node-a",
    ):
        assert f"would delete: {gone}" in lines
    assert "would delete: CustomResourceDefinition nodenetworkconfigs.acn.azure.com" in lines
    assert any(line.startswith("would stay: PersistentVolumeClaim") for line in lines)
    assert not any("somebodys" in line for line in lines)


async def test_pools_of_whereabouts_stay_with_their_definition(capsys: pytest.CaptureFixture[str]) -> None:
    installation = await installed()
    await installation.pool("10.9.0.0-24", "whereabouts")
    await uninstall(installation)
    assert [pool.metadata.name for pool in installation.cluster.items(IPPool)] == ["10.9.0.0-24"]
    definitions = [item.metadata.name for item in installation.cluster.items(CustomResourceDefinition)]
    assert definitions == ["ippools.whereabouts.cni.cncf.io"]
    assert "in it is IPPool kube-system/10.9.0.0-24, written by whereabouts\n" in capsys.readouterr().out


async def test_definitions_that_a_network_of_whereabouts_needs_stay() -> None:
    installation = await installed()
    spec = NetworkAttachmentDefinitionSpec(config='{"ipam": {"type": "whereabouts"')
    network = NetworkAttachmentDefinition(metadata=ObjectMeta(name="blue", namespace="default"), spec=spec)
    await installation.cluster.create(network, manager="kubectl")
    await uninstall(installation)
    definitions = [item.metadata.name for item in installation.cluster.items(CustomResourceDefinition)]
    assert [name.partition(".")[2] for name in definitions] == ["whereabouts.cni.cncf.io"] * 3


async def test_a_config_of_another_controller_keeps_its_finalizers_and_stays() -> None:
    installation = await installed()
    theirs = NodeNetworkConfig(metadata=meta("node-b", finalizers=["example.org/theirs"]))
    await installation.cluster.create(theirs, manager="dnc-rc")
    await uninstall(installation)
    [left] = installation.cluster.items(NodeNetworkConfig)
    assert (left.metadata.name, left.metadata.deletion_timestamp) == ("node-b", None)


async def test_a_run_that_ran_out_of_time_is_taken_up_by_the_next() -> None:
    installation = await installed()
    installation.remover_works = False
    with pytest.raises(NotYet, match=r"the remover on 0 of 0 nodes .*: run it again to continue"):
        await uninstall(installation)
    assert "NodeNetworkConfig node-a" in installation.left()
    installation.remover_works = True
    await uninstall(installation)
    assert installation.left() == ["PersistentVolumeClaim podtide-controller"]


async def test_a_run_that_ended_between_agents_and_remover_is_taken_up_by_the_next() -> None:
    installation = await installed()
    installation.ending_seconds = 1000
    with pytest.raises(NotYet, match="the end of pods kube-system/podtide-agent-0"):
        await uninstall(installation)
    assert installation.own_pods(), "agents have not ended, and the remover waits for them"
    installation.ending_seconds = 0
    await uninstall(installation)
    assert installation.left() == ["PersistentVolumeClaim podtide-controller"]


async def test_forced_it_goes_on_without_nodes_that_do_not_answer(capsys: pytest.CaptureFixture[str]) -> None:
    installation = await installed()
    installation.remover_works = False
    await uninstall(installation, FORCED)
    assert installation.left() == ["PersistentVolumeClaim podtide-controller"]
    assert "going on without them (--force): " in capsys.readouterr().out


async def test_after_helm_uninstall_it_needs_an_image_to_clean_nodes_with() -> None:
    installation = await installed()
    await installation.cluster.delete(DaemonSet, "podtide-agent", SYSTEM_NAMESPACE)
    with pytest.raises(Refused, match="give podtide's image with --image"):
        await uninstall(installation)
    options = structs.replace(OPTIONS, wish=RemovalWish(has_image=True), image="podtide:2")
    await uninstall(installation, options)
    assert installation.left() == ["PersistentVolumeClaim podtide-controller"]


@pytest.mark.real_time
async def test_with_the_allocator_what_the_cluster_has_there_is_free_and_other_clusters_keep_theirs(
    tmp_path: Path,
) -> None:
    installation = await installed()
    uid = (await installation.cluster.get(Namespace, SYSTEM_NAMESPACE)).metadata.uid
    async with await open_allocator(
        f"sqlite:///{tmp_path}/subnets.db", clock=SystemClock(), migrate=True
    ) as allocator:
        await allocator.add_subnet(SubnetSpec(network="default", name="pods", cidrs=("10.1.0.0/24",)))
        for name, of in (("ours", uid), ("theirs", "another")):
            await allocator.open_term(TermClaim(cluster=name, cluster_uid=of, holder="x"))
            wish = Wish(
                id=f"nc-{name}",
                network="default",
                subnet="pods",
                cluster=name,
                cluster_uid=of,
                node="node-a",
                count=8,
                request_uid="r",
                generation=1,
            )
            await allocator.put_container(wish)
        async with installation.running():
            await uninstall_from(installation.cluster, allocator, OPTIONS)
        assert [each.id for each in (await allocator.list_containers()).items] == ["nc-theirs"]


@pytest.mark.real_time
async def test_what_living_pods_have_is_never_freed_at_the_allocator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    installation = await installed()
    await installation.holding_pod()
    uid = (await installation.cluster.get(Namespace, SYSTEM_NAMESPACE)).metadata.uid
    async with await open_allocator(
        f"sqlite:///{tmp_path}/subnets.db", clock=SystemClock(), migrate=True
    ) as allocator:
        await allocator.open_term(TermClaim(cluster="ours", cluster_uid=uid, holder="x"))
        async with installation.running():
            await uninstall_from(installation.cluster, allocator, FORCED)
        assert [each.name for each in (await allocator.list_clusters()).clusters] == ["ours"]
    assert "stays reserved: pods still have addresses of it" in capsys.readouterr().out


def test_the_remover_runs_where_and_as_what_the_agents_did() -> None:
    agents = DaemonSet(spec=DaemonSetSpec(template={"spec": AGENT_POD}))
    pod = remover("tides", agents=agents).spec.template["spec"]
    [works] = pod["initContainers"]
    assert (works["image"], works["imagePullPolicy"]) == ("podtide:1", "Never")
    assert pod["tolerations"] == AGENT_POD["tolerations"]
    assert {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"]} == {
        "cni-bin": "/usr/lib/cni",
        "cni-conf": "/etc/cni/net.d",
        "state": "/var/lib",
        "sockets": "/run",
    }
    mounted = {mount["name"]: mount["mountPath"] for mount in works["volumeMounts"]}
    assert f"--state-directory={mounted['state']}/podtide" in works["args"]
    assert f"--socket-directory={mounted['sockets']}/podtide" in works["args"]
    assert (
        remover("tides", agents=agents, image="podtide:2").spec.template["spec"]["containers"][0]["image"]
        == "podtide:2"
    )


def test_a_remover_that_is_held_back_is_let_go_to_the_same_nodes() -> None:
    agents = DaemonSet(spec=DaemonSetSpec(template={"spec": AGENT_POD | {"nodeSelector": {"os": "linux"}}}))
    made = remover("tides", agents=agents)
    held = held_back(made)
    assert held.spec.template["spec"]["nodeSelector"] == {
        "os": "linux",
        "podtide.io/uninstall": "when-agents-have-ended",
    }
    assert let_go(held) == made == let_go(made)


@pytest.mark.real_time
async def test_the_command_refuses_in_one_line_and_says_what_it_would_do(
    podtide: Run, tmp_path: Path
) -> None:
    installation = await installed()
    await installation.holding_pod()
    kubeconfig = tmp_path / "kubeconfig"
    async with serving(installation.cluster.server, ListenAddress("127.0.0.1", 0)) as url:
        write_kubeconfig(kubeconfig, url)
        refused = await asyncio.to_thread(podtide, "uninstall", f"--kubeconfig={kubeconfig}")
        shown = await asyncio.to_thread(podtide, "uninstall", "--dry-run", f"--kubeconfig={kubeconfig}")
        told = await asyncio.to_thread(
            podtide, "uninstall", "--dry-run", f"--kubeconfig={kubeconfig}", "-o", "json"
        )
    document = json.loads(told.out)
    assert (document["dry_run"], document["left_without_plugin"]) == (True, ["default/web"])
    assert document["refused"][0].startswith("1 pod holds addresses of podtide's")
    assert document["steps"] == told.err.splitlines() == shown.out.splitlines()
    assert (refused.status, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert refused.err.startswith("podtide: 1 pod holds addresses of podtide's (default/web on node-a)")
    assert shown.status == 0
    # Who wrote an object is told by the API server, and by no field of podtide's.
    assert "would delete: IPPool kube-system/10.0.0.0-24\n" in shown.out
