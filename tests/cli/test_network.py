"""`podtide network show`: slices, pools, reservations and leaks of secondary networks."""

import json
from pathlib import Path

import pytest

from cli.conftest import Run
from cli.drawn_cluster import THEN, DrawnCluster, served
from cli.drawn_networks import draw_definition, draw_pool, draw_reservation, draw_slices, held_by
from podtide.cli.shell.exit_status import ExitStatus


async def draw(drawn: DrawnCluster) -> None:
    """A sliced network with a node that is gone and one that lacks a slice, a shared one, and a pool of neither."""
    await drawn.node("a")
    await drawn.node("b")
    await drawn.pod("web", "a", "10.1.0.1")
    await draw_definition(
        drawn,
        "cut",
        "10.7.0.0/24",
        node_slice_size="/28",
        network_name="cut",
        enable_overlapping_ranges=False,
    )
    await draw_slices(drawn, "cut", "10.7.0.0/24", "/28", {"a": "10.7.0.0/28", "old": "10.7.0.16/28"})
    held = {1: held_by("default/web"), 2: held_by("default/gone")}
    await draw_pool(drawn, "cut-a", "10.7.0.0/28", held, node="a", slices="cut")
    left = {1: held_by("default/web")}
    await draw_pool(drawn, "cut-old", "10.7.0.16/28", left, node="old", slices="cut", gone_since=THEN)
    await draw_definition(drawn, "shared", "10.8.0.0/24")
    await draw_pool(drawn, "10.8.0.0-24", "10.8.0.0/24", {5: held_by("default/web")})
    await draw_reservation(drawn, "10.8.0.5", "default/web")
    await draw_pool(drawn, "stray", "10.9.0.0/24")


def test_all_networks_are_a_table_with_their_counts(podtide: Run, tmp_path: Path) -> None:
    with served(draw, tmp_path) as kubeconfig:
        lines = podtide("network", "show", "--kubeconfig", str(kubeconfig)).out.splitlines()
        wide = podtide("network", "show", "--kubeconfig", str(kubeconfig), "-o", "wide").out
        names = podtide("network", "show", "--kubeconfig", str(kubeconfig), "-o", "name").out
    assert lines == [
        "NETWORK      RANGES              POOLS  CAPACITY  HELD  QUARANTINED  OWED  RESERVATIONS  LEAKS",
        "10.8.0.0-24  10.8.0.0/24         1      254       1     0            0     1             0",
        "cut          10.7.0.0/24 by /28  2      28        3     1            1     0             1",
        "-            -                   1      0         0     0            0     0             0",
    ]
    assert "default/shared" in wide
    assert names.splitlines() == ["network/10.8.0.0-24", "network/cut", "network/"]


def test_one_network_is_shown_with_its_slices_pools_and_leaks(podtide: Run, tmp_path: Path) -> None:
    with served(draw, tmp_path) as kubeconfig:
        lines = podtide("network", "show", "cut", "--kubeconfig", str(kubeconfig)).out.splitlines()
        document = json.loads(
            podtide("network", "show", "cut", "--kubeconfig", str(kubeconfig), "-o", "json").out
        )
    assert lines == [
        "network cut: no reservations across networks; defined by default/cut",
        "  range 10.7.0.0/24 by /28: 2 of 16 slices assigned",
        "    1 node has no slice: b",
        "  3 of 28 addresses held, 1 of them in quarantine; 0 reservations, 1 leak",
        "",
        "POOL     RANGE         NODE  HELD  CAPACITY  STATE",
        "cut-a    10.7.0.0/28   a     2     14        ok",
        f"cut-old  10.7.0.16/28  old   1     14        quarantined since {THEN}",
        "",
        "leaked: 10.7.0.2 in pool cut-a for pod default/gone: its pod is gone",
    ]
    assert document["network"]["pools"][0]["holders"]["10.7.0.1"]["podref"] == "default/web"


@pytest.mark.parametrize("name", ["10.8.0.0-24", "10.8.0.0/24"])
def test_an_unnamed_network_is_found_by_its_range_and_reservations_are_wide(
    podtide: Run, tmp_path: Path, name: str
) -> None:
    with served(draw, tmp_path) as kubeconfig:
        wide = podtide("network", "show", name, "--kubeconfig", str(kubeconfig), "-o", "wide").out
    assert "addresses are reserved across networks; defined by default/shared" in wide
    assert any(line.split()[:3] == ["10.8.0.5", "10.8.0.5", "default/web"] for line in wide.splitlines())


def test_an_unknown_network_names_those_there_are_and_none_is_a_sentence(
    podtide: Run, tmp_path: Path
) -> None:
    async def nothing(drawn: DrawnCluster) -> None:
        await drawn.node("a")

    with served(draw, tmp_path) as kubeconfig:
        unknown = podtide("network", "show", "no", "--kubeconfig", str(kubeconfig))
    with served(nothing, tmp_path) as kubeconfig:
        none = podtide("network", "show", "--kubeconfig", str(kubeconfig))
    assert unknown.status == ExitStatus.BAD_INPUT
    assert unknown.err.endswith("in namespace kube-system: there are 10.8.0.0-24, cut\n")
    assert none.out == "there are no secondary networks with pools in namespace kube-system\n"
