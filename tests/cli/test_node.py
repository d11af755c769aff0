"""`podtide node`: a node's pool, the arithmetic of its request and its slices, with and without an allocator."""

import asyncio
import json
from pathlib import Path

from allocator.contract.harness import a_wish
from cli.conftest import Run
from cli.drawn_cluster import THEN, DrawnCluster, addresses, served
from cli.drawn_networks import draw_definition, draw_pool, draw_slices, held_by
from podtide.allocator.store import open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.cli.shell.exit_status import ExitStatus
from podtide.runtime.clock import SystemClock


async def draw(drawn: DrawnCluster) -> None:
    """Node a, which waits, gives back and has a slice; node b, which has none."""
    await drawn.subnet()
    await drawn.lead()
    await drawn.config("a", requested=15, granted=addresses(4), named=["10.1.0.13"], short=True)
    await drawn.pod("web-1", "a", "10.1.0.10")
    await drawn.pod("late", "a")
    await drawn.config("b", requested=15, granted=addresses(15, 40))
    await draw_definition(drawn, "cut", "10.7.0.0/24", node_slice_size="/28", network_name="cut")
    await draw_slices(drawn, "cut", "10.7.0.0/24", "/28", {"a": "10.7.0.0/28"})
    held = {1: held_by("default/web-1"), 2: held_by("default/gone")}
    await draw_pool(drawn, "cut-a", "10.7.0.0/28", held, node="a", slices="cut")


def test_the_pool_the_arithmetic_and_the_slices_are_shown(podtide: Run, tmp_path: Path) -> None:
    with served(draw, tmp_path) as kubeconfig:
        text = podtide("node", "a", "--kubeconfig", str(kubeconfig)).out
        wide = podtide("node", "a", "--kubeconfig", str(kubeconfig), "-o", "wide").out
        answer = json.loads(podtide("node", "a", "--kubeconfig", str(kubeconfig), "-o", "json").out)
        name = podtide("node", "a", "--kubeconfig", str(kubeconfig), "-o", "name").out
    lines = text.splitlines()
    assert lines[0].startswith("node a, where 1 pod has an address and 1 waits for one: ")
    assert "  demand      2: 1 pod with an address, 1 waiting" in lines
    assert "  waiting     default/late" in lines
    assert "  requested   15 per subnet" in lines
    assert "  held        4, of which 1 being released" in lines
    assert "  owed        12" in lines
    assert [line.split() for line in lines if line.startswith("blue/pods")] == [
        ["blue/pods", "10.1.0.0/24", "10.9.0.1", "4", "1", "2", "1", "12"]
    ]
    assert [line.split() for line in lines if line.startswith("cut ")] == [
        ["cut", "10.7.0.0/28", "cut-a", "2", "14", "1", "ok"]
    ]
    assert f"Granted=False since {THEN} (SubnetShort): subnet pods: 4 addresses held, 15 asked for" in lines
    assert "VERSION" in wide
    assert answer["should_request"] == 15
    assert answer["arithmetic"]
    assert answer["quarantined"] is None
    assert name == "node/a\n"


def test_a_node_without_a_slice_is_said_to_lack_it(podtide: Run, tmp_path: Path) -> None:
    with served(draw, tmp_path) as kubeconfig:
        lines = podtide("node", "node/b", "--kubeconfig", str(kubeconfig)).out.splitlines()
    assert "  no slice    of cut 10.7.0.0/24" in lines


def test_what_earlier_nodes_of_the_name_left_is_the_allocators_to_tell(podtide: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'subnets.db'}"

    async def fill() -> None:
        async with await open_allocator(url, clock=SystemClock(), migrate=True) as allocator:
            await allocator.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/24",)))
            await allocator.put_container(a_wish("old", 2, node="a"))
            await allocator.delete_container("old", cluster="east")

    asyncio.run(fill())
    with served(draw, tmp_path) as kubeconfig:
        with_it = podtide("node", "a", "--kubeconfig", str(kubeconfig), "--database", url)
        in_vain = podtide("node", "a", "--kubeconfig", str(kubeconfig), "--allocator", "http://127.0.0.1:1")
    assert "  quarantined 3 that earlier nodes of this name had" in with_it.out.splitlines()
    assert in_vain.status == ExitStatus.DONE
    assert "quarantined" not in in_vain.out
    assert "could not ask the allocator" in in_vain.err


def test_an_unknown_node_is_one_sentence(podtide: Run, tmp_path: Path) -> None:
    with served(draw, tmp_path) as kubeconfig:
        answer = podtide("node", "c", "--kubeconfig", str(kubeconfig))
    assert answer.status == ExitStatus.BAD_INPUT
    assert answer.err == "podtide: there is no node c: check the name\n"
