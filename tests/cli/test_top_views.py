"""`podtide top` covers secondary networks, and shows the part that was asked for in the order that was asked for."""

import asyncio
import json
from pathlib import Path

import pytest

from cli.conftest import Run
from cli.drawn_cluster import DrawnCluster, addresses, served
from cli.drawn_networks import draw_definition, draw_pool, draw_slices, held_by
from podtide.cli.top.command import lines_of, look_once
from podtide.cli.top.sources import WatchedCluster
from podtide.cli.top.view import TopGrouping, TopOrder, TopView


async def draw(drawn: DrawnCluster) -> None:
    """Two subnets, three nodes, pods of two namespaces, and a sliced network."""
    await drawn.subnet("tight", capacity=10, reserved=10, exhausted=True)
    await drawn.subnet("wide", capacity=253, reserved=16)
    await drawn.config("a-1", requested=5, granted=addresses(2), subnet="tight")
    await drawn.config("a-2", requested=4, granted=addresses(4, 20), subnet="tight")
    await drawn.config("b-1", requested=15, granted=addresses(15, 40), subnet="wide")
    await drawn.pod("one", "a-1", "10.1.0.10", namespace="shop")
    await drawn.pod("two", "a-1", "10.1.0.11", namespace="shop")
    await drawn.pod("three", "b-1", "10.1.0.40", namespace="bank")
    await drawn.pod("late", "b-1", namespace="bank")
    await draw_definition(drawn, "cut", "10.7.0.0/24", node_slice_size="/28", network_name="cut")
    await draw_slices(drawn, "cut", "10.7.0.0/24", "/28", {"a-1": "10.7.0.0/28"})
    await draw_pool(drawn, "cut-a-1", "10.7.0.0/28", {1: held_by("shop/one")}, node="a-1", slices="cut")


async def test_secondary_networks_are_a_table_of_their_own() -> None:
    drawn = DrawnCluster()
    await draw(drawn)
    overview = await look_once(drawn.cluster)
    lines = list(lines_of(overview, None))
    at = lines.index("NETWORK  RANGES       CAPACITY  HELD  FREE  USED  QUARANTINED  SLICES")
    assert lines[at + 1] == "cut      10.7.0.0/24  14        1     13    7%    0            1/16"
    assert lines[at + 3].startswith("NODE")
    wide = list(lines_of(overview, None, is_wide=True))
    assert [line.split()[-1] for line in wide if line.startswith("a-1")] == ["1"]


async def test_what_is_watched_is_what_is_read_once_with_networks_and_views() -> None:
    drawn = DrawnCluster()
    await draw(drawn)
    view = TopView(nodes=("a-*",), order=TopOrder.NAME, by=TopGrouping.NAMESPACE)
    followed = WatchedCluster(drawn.cluster, view=view)
    following = asyncio.create_task(followed.run())
    await asyncio.sleep(1)
    await draw_pool(drawn, "cut-a-2", "10.7.0.16/28", {1: held_by("shop/two")}, node="a-2", slices="cut")
    await asyncio.sleep(1)
    seen = followed.overview()
    assert seen == await look_once(drawn.cluster, view=view)
    assert seen is not None
    assert [line.held for line in seen.networks] == [2]
    following.cancel()


@pytest.mark.parametrize(
    ("order", "subnets", "nodes"),
    [
        (TopOrder.WORST, ["tight", "wide"], ["a-1", "b-1", "a-2"]),
        (TopOrder.NAME, ["tight", "wide"], ["a-1", "a-2", "b-1"]),
        (TopOrder.HELD, ["wide", "tight"], ["b-1", "a-2", "a-1"]),
        (TopOrder.FREE, ["tight", "wide"], ["a-1", "a-2", "b-1"]),
        (TopOrder.PODS, ["tight", "wide"], ["a-1", "b-1", "a-2"]),
        (TopOrder.WAITING, ["tight", "wide"], ["b-1", "a-1", "a-2"]),
        (TopOrder.OWED, ["tight", "wide"], ["a-1", "a-2", "b-1"]),
    ],
)
async def test_the_order_is_the_one_that_was_asked_for(
    order: TopOrder, subnets: list[str], nodes: list[str]
) -> None:
    drawn = DrawnCluster()
    await draw(drawn)
    overview = await look_once(drawn.cluster, view=TopView(order=order))
    assert [line.name for line in overview.subnets] == subnets
    assert [line.name for line in overview.nodes] == nodes


async def test_a_filter_shows_less_and_counts_as_before() -> None:
    drawn = DrawnCluster()
    await draw(drawn)
    some = await look_once(drawn.cluster, view=TopView(nodes=("a-1",), subnets=("t*",)))
    assert [line.name for line in some.nodes] == ["a-1"]
    assert [(line.name, line.nodes, line.owed) for line in some.subnets] == [("tight", 2, 3)]
    of_subnet = await look_once(drawn.cluster, view=TopView(subnets=("wide",)))
    assert [line.name for line in of_subnet.nodes] == ["b-1"]
    assert [line.name for line in of_subnet.namespaces] == ["bank"]


def test_by_namespace_counts_pods_and_addresses_of_both_modes(podtide: Run, tmp_path: Path) -> None:
    with served(draw, tmp_path) as kubeconfig:
        where = ("--kubeconfig", str(kubeconfig))
        lines = podtide("top", *where, "--by", "namespace", "--sort", "pods").out.splitlines()
        document = json.loads(podtide("top", *where, "-o", "json").out)
        names = podtide("top", *where, "-o", "name", "--node", "a-*", "--subnet", "tight").out.splitlines()
    assert lines[-3:] == [
        "NAMESPACE  PODS  WAITING  ADDRESSES  SECONDARY  NODES",
        "shop       2     0        2          1          1",
        "bank       1     1        1          0          1",
    ]
    assert [line["name"] for line in document["namespaces"]] == ["bank", "shop"]
    assert names == ["subnet/tight", "network/cut", "node/a-1", "node/a-2"]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--node=x-*", "there is no node x-*: check --node"),
        ("--subnet=x", "there is no subnet x: check --subnet"),
    ],
)
def test_a_name_that_fits_nothing_is_pointed_out(
    podtide: Run, tmp_path: Path, option: str, words: str
) -> None:
    with served(draw, tmp_path) as kubeconfig:
        answer = podtide("top", "--kubeconfig", str(kubeconfig), option)
    assert (answer.status, answer.err) == (0, f"podtide: warning: {words}\n")
