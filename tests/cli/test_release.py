"""`podtide release` frees what no pod can have, and nothing else unless it is forced."""

import asyncio
import io
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from allocator.contract.harness import a_wish
from cli.conftest import Run
from cli.drawn_cluster import MANAGER, THEN, DrawnCluster, addresses, served
from cli.drawn_networks import draw_definition, draw_pool, draw_reservation, draw_slices, held_by
from podtide.allocator.store import open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.cli.release.command import NotReleased, ReleaseAnswer, ReleaseOptions, release_address
from podtide.cli.shell.exit_status import ExitStatus
from podtide.cluster.port import Page, R
from podtide.core.errors import InvalidInput
from podtide.core.ranges import parse_address
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import NODE_ANNOTATION, SYSTEM_NAMESPACE
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.resources.pod import Pod, PodContainer, PodPhase, PodSpec, PodStatus
from podtide.runtime.clock import SystemClock
from podtide.runtime.logging import make_logger


async def draw(drawn: DrawnCluster) -> None:
    """A sliced network with a living and a gone pod, a guarded shared one, and a node's pool."""
    await drawn.config("a", requested=3, granted=addresses(3), named=["10.1.0.12"])
    await drawn.pod("web", "a", "10.1.0.10")
    await drawn.pod("lost", "nowhere", "10.1.0.99")
    await draw_definition(drawn, "cut", "10.7.0.0/24", node_slice_size="/28", network_name="cut")
    await draw_slices(drawn, "cut", "10.7.0.0/24", "/28", {"a": "10.7.0.0/28", "old": "10.7.0.16/28"})
    held = {
        1: held_by("default/web"),
        2: held_by("default/gone"),
        3: held_by(""),
        4: held_by("default/lost"),
    }
    await draw_pool(drawn, "cut-a", "10.7.0.0/28", held, node="a", slices="cut")
    left = {1: held_by("default/gone")}
    await draw_pool(drawn, "cut-old", "10.7.0.16/28", left, node="old", slices="cut", gone_since=THEN)
    await draw_definition(drawn, "shared", "10.8.0.0/24")
    await draw_pool(drawn, "10.8.0.0-24", "10.8.0.0/24", {5: held_by("default/gone")})
    await draw_reservation(drawn, "10.8.0.5", "default/gone")
    await draw_reservation(drawn, "10.8.0.6", "default/gone")


def options(address: str, *, force: bool = False, yes: bool = False, dry_run: bool = False) -> ReleaseOptions:
    return ReleaseOptions(
        address=parse_address(address),
        network="",
        namespace=SYSTEM_NAMESPACE,
        reason="test",
        force=force,
        yes=yes,
        dry_run=dry_run,
    )


async def release(drawn: DrawnCluster, wanted: ReleaseOptions) -> ReleaseAnswer:
    return await release_address(drawn.cluster, None, wanted, make_logger(io.StringIO(), SystemClock()))


async def drawn_cluster() -> DrawnCluster:
    drawn = DrawnCluster()
    await draw(drawn)
    return drawn


async def held(drawn: DrawnCluster, pool: str) -> set[str]:
    return set((await drawn.cluster.get(IPPool, pool, SYSTEM_NAMESPACE)).spec.allocations)


async def reservations(drawn: DrawnCluster) -> set[str]:
    listed = await drawn.cluster.list(OverlappingRangeIPReservation, SYSTEM_NAMESPACE)
    return {each.metadata.name for each in listed.items}


async def test_an_address_of_a_pod_that_is_gone_is_freed_and_no_other() -> None:
    drawn = await drawn_cluster()
    answer = await release(drawn, options("10.7.0.2"))
    assert answer.released
    assert answer.words == "10.7.0.2 of network cut is free; pod default/gone had it"
    assert await held(drawn, "cut-a") == {"1", "3", "4"}


async def test_a_reservation_goes_with_its_address_and_alone() -> None:
    drawn = await drawn_cluster()
    await release(drawn, options("10.8.0.5", force=True, yes=True))
    assert await held(drawn, "10.8.0.0-24") == set()
    assert await reservations(drawn) == {"10.8.0.6"}
    await release(drawn, options("10.8.0.6", force=True, yes=True))
    assert await reservations(drawn) == set()


@pytest.mark.parametrize("address", ["10.8.0.5", "10.8.0.6"])
async def test_what_a_gone_pod_held_in_a_shared_pool_is_freed_at_once_only_where_its_node_is_known(
    address: str,
) -> None:
    """It may be a pod of a deleted Node whose machine runs on: nothing in the pool tells."""
    drawn = await drawn_cluster()
    with pytest.raises(NotReleased, match="nothing tells from which node"):
        await release(drawn, options(address))
    reserved = await drawn.cluster.get(OverlappingRangeIPReservation, address, SYSTEM_NAMESPACE)
    for node, is_free in (("old", False), ("a", True)):
        marks = replace(reserved.metadata, annotations={NODE_ANNOTATION: node})
        reserved = await drawn.cluster.replace(replace(reserved, metadata=marks), manager=MANAGER)
        if not is_free:
            with pytest.raises(NotReleased, match="the node that it was given by is deleted"):
                await release(drawn, options(address))
    assert (await release(drawn, options(address))).released


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("10.7.0.1", "the pod that holds it lives"),
        ("10.7.0.3", "it is held for no pod by name"),
        ("10.7.0.4", "its pod's node is deleted"),
        ("10.7.0.17", "the node that it was given by is deleted"),
    ],
)
async def test_what_a_pod_may_have_is_refused_and_forced_only_with_a_word(address: str, why: str) -> None:
    drawn = await drawn_cluster()
    with pytest.raises(NotReleased, match=f"is not released: {why}.*two pods would share one address"):
        await release(drawn, options(address))
    with pytest.raises(NotReleased, match="--force needs --yes"):
        await release(drawn, options(address, force=True))
    shown = await release(drawn, options(address, dry_run=True))
    assert why in shown.words
    assert not shown.released
    assert await held(drawn, "cut-a") == {"1", "2", "3", "4"}
    assert (await release(drawn, options(address, force=True, yes=True))).released


async def test_an_address_that_another_pod_shows_is_refused() -> None:
    drawn = await drawn_cluster()
    web = await drawn.cluster.get(Pod, "web", "default")
    status = {"k8s.v1.cni.cncf.io/network-status": json.dumps([{"ips": ["10.7.0.2"]}])}
    await drawn.cluster.replace(
        replace(web, metadata=replace(web.metadata, annotations=status)), manager=MANAGER
    )
    with pytest.raises(NotReleased, match=r"a living pod shows it \(default/web\)"):
        await release(drawn, options("10.7.0.2"))


async def test_a_pod_that_comes_after_the_pool_was_read_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trap T23: pods are read after what they are judged by."""
    drawn = await drawn_cluster()
    plain = drawn.cluster.list
    lists: list[object] = []

    async def list_and_meddle(kind: type[R], namespace: str = "", **more: object) -> Page[R]:
        page = await plain(kind, namespace, **more)  # type: ignore[arg-type]  # as the port has it
        if kind is Pod and not lists:
            lists.append(kind)
            await drawn.pod("gone", "a")
        return page

    monkeypatch.setattr(drawn.cluster, "list", list_and_meddle)
    with pytest.raises(NotReleased, match="the pod that holds it lives"):
        await release(drawn, options("10.7.0.2"))


@pytest.mark.parametrize(
    ("address", "how"),
    [
        ("10.1.0.10", "frees it when the pod is deleted"),
        ("10.1.0.11", "is in the pool of node a"),
        ("10.1.0.12", "gives it back already"),
        ("10.9.0.1", "is free when the node is removed|and free when the node is removed"),
        ("10.1.0.200", "name it with --allocator"),
        ("10.1.0.99", "only the allocator knows"),
    ],
)
async def test_an_address_of_a_nodes_pool_is_its_agents_to_give_back(address: str, how: str) -> None:
    drawn = await drawn_cluster()
    with pytest.raises(InvalidInput, match=how):
        await release(drawn, options(address, force=True, yes=True))


def test_the_answer_has_the_command_that_asks_the_nodes_agent(tmp_path: Path, podtide: Run) -> None:
    async def draw_with_agents(drawn: DrawnCluster) -> None:
        await draw(drawn)
        await draw_agent(drawn, "podtide-agent-x", "b")
        await draw_agent(drawn, "podtide-agent-y", "a")

    with served(draw_with_agents, tmp_path) as kubeconfig:
        refused = podtide("release", "10.1.0.11", "--kubeconfig", str(kubeconfig))
    assert refused.status == ExitStatus.BAD_INPUT
    assert refused.err == (
        "podtide: 10.1.0.11 is in the pool of node a, whose agent alone frees it: "
        f"run: kubectl --kubeconfig {kubeconfig} exec --namespace podtide podtide-agent-y --container agent -- "
        "podtide release 10.1.0.11 --agent-socket /run/podtide/agent.sock\n"
    )
    with served(draw, tmp_path) as kubeconfig:
        refused = podtide("release", "10.1.0.11", "--kubeconfig", str(kubeconfig))
    assert refused.err.endswith(
        "run this on that node, as root: podtide release 10.1.0.11 --agent-socket /run/podtide/agent.sock\n"
    )


async def draw_agent(drawn: DrawnCluster, name: str, node: str) -> None:
    labels = {"app.kubernetes.io/name": "podtide", "app.kubernetes.io/component": "agent"}
    place = ObjectMeta(name=name, namespace="podtide", labels=labels)
    spec = PodSpec(node_name=node, containers=[PodContainer(name="agent", image="none")])
    made = await drawn.cluster.create(Pod(metadata=place, spec=spec), manager=MANAGER)
    await drawn.cluster.replace_status(
        replace(made, status=PodStatus(phase=PodPhase.RUNNING)), manager=MANAGER
    )


@pytest.mark.parametrize("what", ["no socket", "a file"])
def test_without_an_agent_on_the_socket_the_command_says_where_to_run_it(
    tmp_path: Path, podtide: Run, what: str
) -> None:
    socket = tmp_path / "agent.sock"
    if what == "a file":
        socket.touch()
    refused = podtide("release", "10.1.0.11", "--agent-socket", str(socket))
    assert refused.status == ExitStatus.BAD_INPUT
    assert refused.err == (
        f"podtide: no agent listens on {socket}: run this on the node that has the address, while its agent runs\n"
    )


async def test_what_is_free_needs_no_release() -> None:
    answer = await release(await drawn_cluster(), options("10.7.0.9"))
    assert (answer.released, answer.words) == (
        False,
        "nothing holds 10.7.0.9: there is nothing to release",
    )


def test_a_quarantined_address_is_freed_at_the_allocator_unless_a_pod_shows_it(
    podtide: Run, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'subnets.db'}"

    async def fill() -> None:
        async with await open_allocator(url, clock=SystemClock(), migrate=True) as allocator:
            await allocator.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.3.0.0/28",)))
            await allocator.put_container(a_wish("x", 2))
            await allocator.delete_container("x", cluster="east")

    async def draw_shown(drawn: DrawnCluster) -> None:
        await drawn.pod("web", "node-x", "10.3.0.3")

    asyncio.run(fill())
    with served(draw_shown, tmp_path) as kubeconfig:
        where = ("--kubeconfig", str(kubeconfig), "--database", url)
        freed = podtide("release", "10.3.0.4", *where)
        again = podtide("release", "10.3.0.4", *where, "-o", "json")
        refused = podtide("release", "10.3.0.3", *where)
    assert (freed.status, freed.out) == (
        ExitStatus.DONE,
        "10.3.0.4 is free: its quarantine is over\n",
    )
    assert json.loads(again.out)["released"] is False
    assert refused.status == ExitStatus.BAD_INPUT
    assert "pod default/web on node node-x shows 10.3.0.3" in refused.err
