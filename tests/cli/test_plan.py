"""`podtide plan`, as people and programs use it."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Run
from cli.drawn_cluster import DrawnCluster
from podtide.cli.plan.cluster_pods import count_pods, count_running
from podtide.cli.plan.pod_counts import PodCounts
from podtide.cli.plan.workloads import CountedWorkload
from podtide.cluster.listing import list_all
from podtide.core.errors import InvalidInput
from podtide.resources.base import ObjectMeta
from podtide.resources.pod import Pod, PodSpec


def answer(podtide: Run, command: str) -> Any:
    outcome = podtide("plan", *command.split(), "-o", "json")
    assert (outcome.status, outcome.err) == (0, "")
    return json.loads(outcome.out)


def row(found: Any, strategy: str, batch: int) -> Any:
    (one,) = [each for each in found["plans"] if (each["strategy"], each["batch"]) == (strategy, batch)]
    return one


def test_every_strategy_is_compared_by_every_batch(podtide: Run) -> None:
    found = answer(podtide, "--nodes 20 --pods-per-node 12 --subnet 10.0.0.0/23")
    assert [(each["strategy"], each["batch"]) for each in found["plans"]] == [
        (strategy, batch) for strategy in ("reactive", "fixed", "adaptive") for batch in (1, 2, 4, 8, 16)
    ]
    assert found["subnet"] == {"cidrs": ["10.0.0.0/23"], "capacity": 509}
    assert row(found, "fixed", 16)["at_rest_most"] == 20 * 32
    assert row(found, "fixed", 16)["at_rest_share"] == 125.7
    assert row(found, "adaptive", 16)["every_pod"]


@pytest.mark.parametrize(
    ("written", "pods"),
    [
        ("12", 120),
        ("10..13", 3 * 13 + 2 * 12 + 3 * 11 + 2 * 10),
        ("p50=4,max=9", 5 * 4 + 5 * 9),
        ("p50=4,p90=6,max=9", 5 * 4 + 4 * 6 + 9),
        ("p99.5=4,max=9", 9 * 4 + 9),
    ],
)
def test_pods_per_node_are_written_in_several_ways(podtide: Run, written: str, pods: int) -> None:
    found = answer(podtide, f"--nodes 10 --pods-per-node {written} --batch 4")
    assert found["rest"] == {"nodes": 10, "pods": pods, "gone_nodes": 0}
    assert found["subnet"] is None


def test_a_file_has_a_number_for_each_node(podtide: Run, tmp_path: Path) -> None:
    counts = tmp_path / "counts.txt"
    counts.write_text("3\n\n 4 \n3\n")
    assert answer(podtide, f"--pods-per-node @{counts}")["rest"] == {"nodes": 3, "pods": 10, "gone_nodes": 0}
    assert answer(podtide, f"--pods-per-node @{counts} --nodes 6")["rest"]["pods"] == 20


def test_counts_may_come_from_stdin(podtide: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("7\n8\n"))
    assert answer(podtide, "--pods-per-node @-")["rest"]["pods"] == 15


def test_the_worst_case_is_told(podtide: Run) -> None:
    found = answer(
        podtide,
        "--nodes 9 --pods-per-node 10 --node-growth 3 --burst 1.5 --zones 3 --lose-zones 1 --surge 25% --batch 1",
    )
    assert found["worst"] == {"nodes": 8, "pods": 180, "gone_nodes": 4 + 2}


def test_csv_has_the_rows_of_the_table(podtide: Run) -> None:
    outcome = podtide("plan", "--nodes", "4", "--pods-per-node", "5", "--batch", "4", "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(outcome.out)))
    assert [(each["strategy"], each["at_rest_most"], each["smallest_prefix"]) for each in rows] == [
        ("reactive", "36", "26"),
        ("fixed", "32", "26"),
        ("adaptive", "32", "27"),
    ]
    assert rows[0]["at_rest_share"] == ""


def test_the_table_for_people(podtide: Run) -> None:
    outcome = podtide("plan", "--nodes", "4", "--pods-per-node", "230", "--batch", "16")
    assert outcome.out.splitlines() == [
        "at rest:  920 pods on 4 nodes",
        "at worst: 920 pods on 4 nodes",
        "",
        "STRATEGY  BATCH  AT REST   AT WORST  BATCH THEN  EVERY POD  SMALLEST",
        "reactive  16     964…1004  964…1004  16          yes        /22",
        "fixed     16     960       960       16          yes        /22",
        "adaptive  16     960       960       16          yes        /22",
        "",
        "Choose a /22: with podtide and batches up to 16 every pod has an address at worst.",
    ]


def test_pods_that_go_without_are_counted_in_the_table(podtide: Run) -> None:
    flags = "--nodes 10 --pods-per-node 20 --burst 1.5 --lose-zones 1 --subnet 10.0.0.0/24 --batch 1"
    lines = podtide("plan", *flags.split()).out.splitlines()
    assert lines[1] == "at worst: 300 pods on 6 nodes; 4 nodes that are gone keep their addresses"
    assert "no: 123 of 300 at worst" in lines[-3]
    assert "1, starved" in lines[-3]


def test_warm_pools_are_compared_where_their_nodes_are_known(podtide: Run) -> None:
    flags = "--nodes 2 --pods-per-node 5 --batch 4 --interfaces 3 --ips-per-interface 3 --warm-ip-target 2 --minimum-ip-target 5"
    assert row(answer(podtide, flags), "warm", 1)["at_rest_most"] == 2 * (7 + 3)
    assert podtide("plan", *flags.split()).out.splitlines()[-3].startswith("warm      -      20")


def test_kept_back_addresses_are_not_in_the_capacity(podtide: Run) -> None:
    flags = "--nodes 2 --pods-per-node 5 --subnet 10.0.0.0/24 --keep-back 10.0.0.9 --keep-back-first 2"
    assert answer(podtide, flags)["subnet"]["capacity"] == 250


def test_an_ipv6_subnet_has_room(podtide: Run) -> None:
    found = answer(podtide, "--nodes 20 --pods-per-node 12 --subnet fd00::/64 --batch 16")
    assert row(found, "adaptive", 16)["smallest_prefix"] == 119


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("", "say how many pods nodes have: either --pods-per-node, or --from-cluster"),
        ("--pods-per-node 5", "say how many nodes there are"),
        ("--nodes 0 --pods-per-node 5", "--nodes 0 is refused: a plan is made for at least 1 node"),
        ("--nodes -3 --pods-per-node 5", "--nodes=-3 is refused"),
        ("--nodes 5 --pods-per-node -5", "--pods-per-node '-5' is refused: give a number such as 20"),
        ("--nodes 5 --pods-per-node 30..10", "a range goes from the smaller to the larger number"),
        ("--nodes 5 --pods-per-node p90=5,p50=7,max=9", "is refused: give a number such as 20, a range"),
        ("--nodes 5 --pods-per-node p50=5", "quantiles that end with max"),
        ("--nodes 5 --pods-per-node @/nowhere", "--pods-per-node cannot read /nowhere: No such file"),
        ("--nodes 5 --pods-per-node 5 --burst 0.5", "a burst of 0.5 is refused"),
        ("--nodes 5 --pods-per-node 5 --lose-zones 3", "3 lost zones of 3 is refused: give a number from 0 to 2"),
        ("--nodes 5 --pods-per-node 5 --zones 0", "0 zones is refused"),
        ("--nodes 1 --pods-per-node 5 --lose-zones 1", "none would be left for the pods"),
        ("--nodes 5 --pods-per-node 5 --surge -1", "--surge '-1' is refused"),
        ("--nodes 5 --pods-per-node 5 --node-growth some", "--node-growth 'some' is refused"),
        ("--nodes 5 --pods-per-node 5 --subnet 10.0.0.1/24", "10.0.0.1/24 is not the first address of its network"),
        ("--nodes 5 --pods-per-node 5 --subnet 10.0.0.0/31", "10.0.0.0/31 has no usable address"),
        ("--nodes 5 --pods-per-node 5 --subnet fd00::/127", "fd00::/127 has no usable address"),
        ("--nodes 5 --pods-per-node 5 --subnet 10.0.0.0/24 --subnet fd00::/64", "are of two families"),
        ("--nodes 5 --pods-per-node 5 --subnet here", "here"),
        ("--nodes 5 --pods-per-node 5 --keep-back 10.0.0.3", "--keep-back names addresses of a subnet"),
        ("--nodes 5 --pods-per-node 5 --batch 0", "batch 0 is too small"),
        ("--nodes 5 --pods-per-node 5 --batch 500", "batch 500 is more than the 250 addresses a node may have"),
        ("--nodes 5 --pods-per-node 5 --buffer -1", "buffer -1 is negative"),
        ("--nodes 5 --pods-per-node 5 --max-ips 0", "is more than the 0 addresses"),
        ("--nodes 5 --pods-per-node 5 --upper 0.5", "do not make a band"),
        ("--nodes 5 --pods-per-node 5 --interfaces 3", "give --interfaces and --ips-per-interface"),
        ("--nodes 5 --pods-per-node 5 --interfaces 3 --ips-per-interface 0", "ips per interface 0 is refused"),
        ("--nodes 5 fit --pods 3", "--nodes is an option of `podtide plan` itself: give those of `fit` after its name."),
    ],
)  # fmt: skip
def test_what_cannot_be_planned_is_refused_in_one_sentence(podtide: Run, flags: str, words: str) -> None:
    outcome = podtide("plan", *flags.split())
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1), outcome.err
    assert words in outcome.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"3\nmany\n", ":2: 'many' is not a number of pods"),
        (b"\n\n", "is empty: give a number of pods in each line"),
        (b"3\n99999\n", ":2: '99999' is not a number of pods"),
        (b"\xff", "it is not text"),
    ],
)
def test_a_file_of_counts_that_has_none(podtide: Run, tmp_path: Path, text: bytes, words: str) -> None:
    counts = tmp_path / "counts.txt"
    counts.write_bytes(text)
    outcome = podtide("plan", "--pods-per-node", f"@{counts}")
    assert (outcome.status, outcome.err.count("\n")) == (2, 1)
    assert words in outcome.err


def test_too_many_batches_are_refused(podtide: Run) -> None:
    batches = [flag for batch in range(1, 34) for flag in ("--batch", str(batch))]
    outcome = podtide("plan", "--nodes", "5", "--pods-per-node", "5", *batches)
    assert outcome.err == "podtide: 33 batches are too many to compare: give 32 or fewer\n"


async def test_a_clusters_nodes_are_counted_with_those_pods_that_need_an_address() -> None:
    drawn = DrawnCluster()
    for name in ("one", "two", "three"):
        await drawn.node(name)
    await drawn.pod("a", "one", "10.1.0.4")
    await drawn.pod("b", "one")
    await drawn.pod("c", "two", "10.1.0.5")
    await drawn.pod("d", "two", host_network=True)
    await drawn.pod("e")
    assert await count_pods(drawn.cluster) == PodCounts({2: 1, 1: 1, 0: 1}, 3)


async def test_a_cluster_without_nodes_cannot_be_counted() -> None:
    with pytest.raises(InvalidInput, match="the cluster has no nodes"):
        await count_pods(DrawnCluster().cluster)


async def test_running_pods_of_a_workload_are_found_by_its_labels_and_namespace() -> None:
    drawn = DrawnCluster()
    for name, namespace, labels in (
        ("a", "default", {"app": "web", "pod-template-hash": "1"}),
        ("b", "default", {"app": "web"}),
        ("c", "default", {"app": "other"}),
        ("d", "shop", {"app": "web"}),
    ):
        made = Pod(
            metadata=ObjectMeta(name=name, namespace=namespace, labels=labels), spec=PodSpec(node_name="one")
        )
        await drawn.cluster.create(made, manager="test")
    workloads = [
        CountedWorkload(kind="Deployment", name="web", namespace="", labels={"app": "web"}),
        CountedWorkload(kind="Deployment", name="web", namespace="shop", labels={"app": "web"}),
        CountedWorkload(kind="Job", name="once", namespace=""),
    ]
    assert count_running(await list_all(drawn.cluster, Pod), workloads, "default") == {0: 2, 1: 1}
