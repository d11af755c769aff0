"""`podtide plan fit`: whether manifests fit into a subnet, asked of an allocator, a cluster, or by numbers."""

import asyncio
import io
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from msgspec.structs import replace

from allocator.contract.harness import a_wish
from cli.conftest import Outcome, Run
from cli.drawn_cluster import DrawnCluster, served
from examples import examples
from foreign.hostile import fragments
from podtide.allocator.store import open_allocator
from podtide.allocator.subnets import Bounds, SubnetSpec
from podtide.cli.plan.manifests import CountedManifests, read_manifests
from podtide.core.errors import InvalidInput
from podtide.core.subnet.statement import Statement, request_at, stated_demand
from podtide.resources.base import ObjectMeta
from podtide.resources.pod import Pod, PodContainer, PodSpec
from podtide.runtime.clock import SystemClock

NUMBERS = ("--capacity", "253", "--running-pods", "150", "--running-nodes", "12")
"""91 more pods fit."""


def deployment(name: str = "web", replicas: object = 10, **spec: object) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **spec},
    }


def of_kind(kind: str, api_version: str = "apps/v1", **spec: object) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "it"}, "spec": spec}


class Manifests:
    """Files of manifests in a directory of their own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._number = 0

    def file(self, *documents: object) -> str:
        """A file with the documents, as JSON, which is YAML."""
        return self.text("\n---\n".join(json.dumps(each) for each in documents))

    def text(self, text: str) -> str:
        self._number += 1
        path = self._directory / f"{self._number}.yaml"
        path.write_text(text)
        return str(path)


@pytest.fixture
def manifests(tmp_path: Path) -> Manifests:
    return Manifests(tmp_path)


def counted(read: CountedManifests, nodes: int = 12) -> list[tuple[int, int]]:
    """Pods at rest and at once of each workload."""
    return [(each.at_rest(nodes), each.at_once(nodes)) for each in read.workloads]


# --- manifests


@pytest.mark.parametrize(
    ("document", "pods"),
    [
        (deployment(), (10, 13)),
        (deployment(replicas=None), (1, 2)),
        (deployment(replicas=0), (0, 0)),
        (deployment(strategy={"type": "Recreate"}), (10, 10)),
        (deployment(strategy={"rollingUpdate": {"maxSurge": 4}}), (10, 14)),
        (deployment(strategy={"rollingUpdate": {"maxSurge": "100%"}}), (10, 20)),
        (deployment(strategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}), (10, 13)),
        (deployment(template={"spec": {"hostNetwork": True}}), (0, 0)),
        (of_kind("StatefulSet", replicas=7), (7, 7)),
        (of_kind("StatefulSet"), (1, 1)),
        (of_kind("ReplicaSet", replicas=3), (3, 3)),
        (of_kind("ReplicationController", "v1", replicas=3, selector={"app": "it"}), (3, 3)),
        (of_kind("DaemonSet"), (12, 12)),
        (of_kind("DaemonSet", updateStrategy={"rollingUpdate": {"maxSurge": "25%"}}), (12, 15)),
        (of_kind("DaemonSet", updateStrategy={"type": "OnDelete"}), (12, 12)),
        (of_kind("DaemonSet", template={"spec": {"hostNetwork": True}}), (0, 0)),
        (of_kind("Job", "batch/v1"), (1, 1)),
        (of_kind("Job", "batch/v1", parallelism=8), (8, 8)),
        (of_kind("Job", "batch/v1", parallelism=8, completions=3), (3, 3)),
        (of_kind("Job", "batch/v1", parallelism=8, suspend=True), (0, 0)),
        (of_kind("Job", "batch/v1", parallelism=None), (1, 1)),
        (of_kind("CronJob", "batch/v1", jobTemplate={"spec": {"parallelism": 4}}), (4, 4)),
        (of_kind("CronJob", "batch/v1", suspend=True, jobTemplate={"spec": {"parallelism": 4}}), (0, 0)),
        (of_kind("Pod", "v1", containers=[]), (1, 1)),
        (of_kind("Pod", "v1", hostNetwork=True), (0, 0)),
    ],
    ids=str,
)
def test_how_many_pods_a_workload_has(
    manifests: Manifests, document: dict[str, Any], pods: tuple[int, int]
) -> None:
    assert counted(read_manifests((manifests.file(document),))) == [pods]


def test_documents_lists_and_files_are_read_together(manifests: Manifests) -> None:
    several = manifests.file(
        deployment("a"), None, {"apiVersion": "v1", "kind": "List", "items": [deployment("b")]}
    )
    read = read_manifests((several, manifests.file(of_kind("Job", "batch/v1"))))
    assert [each.name for each in read.workloads] == ["a", "b", "it"]


def test_an_autoscaler_counts_by_the_most_replicas_that_it_allows(manifests: Manifests) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    scaler = of_kind("HorizontalPodAutoscaler", "autoscaling/v2", maxReplicas=30, scaleTargetRef=target)
    read = read_manifests((manifests.file(scaler, deployment(), deployment("other")),))
    assert counted(read) == [(30, 38), (10, 13)]


def test_kinds_without_pods_are_ignored_and_named(podtide: Run, manifests: Manifests) -> None:
    service = of_kind("Service", "v1", ports=[{"port": 80}])
    outcome = podtide("plan", "fit", "-f", manifests.file(deployment(), service, service), *NUMBERS)
    assert outcome.status == 0
    assert "  ignored, because they make no pods: 2 Service" in outcome.out.splitlines()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ": there is no Kubernetes object in it: see that what writes the manifests succeeds"),
        ("# nothing\n---\n", ": there is no Kubernetes object in it"),
        ("a: [\n", ":2: is not valid YAML: "),
        ("a: b\n  c: d\n", ":2: is not valid YAML: mapping values are not allowed here"),
        ("just words\n", ":1: is not a Kubernetes object: it has no apiVersion and kind"),
        ("kind: Deployment\n", ":1: is not a Kubernetes object"),
        ("apiVersion: v1\nkind: 7\n", ":1: is not a Kubernetes object"),
        ("\x00", "is not valid YAML"),
        ("apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: many}\n", ":1: Deployment is refused: expected `int | null`"),
        ("---\n---\napiVersion: apps/v1\nkind: Deployment\nspec: {replicas: -2}\n", ":3: Deployment  is to have -2 pods"),
        (
            "apiVersion: apps/v1\nkind: Deployment\nspec: {strategy: {rollingUpdate: {maxSurge: lots}}}\n",
            ":1: Deployment maxSurge 'lots' is refused: give a whole number or a percentage",
        ),
        (
            "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nspec: {replicas: 3, template: {spec: {containers: []}}}\n",
            ":1: Rollout of argoproj.io makes pods in a way that podtide does not know: leave it out, and give the number of its pods by --pods",
        ),
        (
            "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: PodTemplate\n  spec: {containers: []}\n",
            ":4: PodTemplate makes pods in a way",
        ),
        (
            "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nspec: {maxReplicas: 0}\n",
            ":1: maxReplicas 0 is refused",
        ),
        ("a: 2001-99-99\n", "is not a manifest: it is nested too deeply or has an invalid value"),
        ("[" * 5000, "is not a manifest: it is nested too deeply or has an invalid value"),
    ],
)  # fmt: skip
def test_what_is_no_manifest_is_refused_with_file_and_line(
    podtide: Run, manifests: Manifests, text: str, words: str
) -> None:
    path = manifests.text(text)
    outcome = podtide("plan", "fit", "-f", path, *NUMBERS)
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1), outcome.err
    assert path in outcome.err
    assert words in outcome.err


def test_files_that_cannot_be_read(podtide: Run, tmp_path: Path) -> None:
    huge, latin = tmp_path / "huge.yaml", tmp_path / "latin.yaml"
    huge.write_bytes(b"#" * (16 * 1024 * 1024 + 1))
    latin.write_bytes(b"a: \xe9\n")
    for path, words in (
        ("/nowhere.yaml", "cannot read /nowhere.yaml: No such file or directory"),
        (str(tmp_path), "Is a directory"),
        (str(huge), "is larger than 16 MiB"),
        (str(latin), "it is not text in UTF-8"),
    ):
        outcome = podtide("plan", "fit", "-f", path, *NUMBERS)
        assert (outcome.status, outcome.err.count("\n")) == (2, 1)
        assert words in outcome.err


@examples(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(fragments, st.text()))
def test_hostile_text_is_a_manifest_or_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "hostile.yaml"
    path.write_bytes(text.encode(errors="surrogatepass"))
    try:
        read_manifests((str(path),))
    except InvalidInput as error:
        assert str(path) in str(error)  # noqa: PT017 - that it is read is as good


# --- the answer


def fit(podtide: Run, *arguments: str) -> tuple[Outcome, Any]:
    outcome = podtide("plan", "fit", *arguments, "-o", "json")
    assert outcome.err == ""
    return outcome, json.loads(outcome.out)


def test_it_fits_to_the_last_address_and_the_exit_status_says_so(podtide: Run) -> None:
    outcome, found = fit(podtide, "--pods", "91", *NUMBERS)
    assert (outcome.status, found["verdict"], found["missing"]["most"]) == (0, "fits", 0)
    outcome, found = fit(podtide, "--pods", "92", *NUMBERS)
    assert (outcome.status, found["verdict"], found["missing"]["most"]) == (1, "does not fit", 1)
    assert (found["room"]["least"], found["add_prefix"]) == (91, 30)


def test_manifests_from_stdin_that_fit_only_without_their_surge(
    podtide: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(deployment(replicas=80))))
    outcome = podtide("plan", "fit", "-f", "-", *NUMBERS)
    assert outcome.status == 1
    assert outcome.out.splitlines() == [
        (
            "does not fit: 100 pods (20 of them while rolling out) more in the subnet need at least 262 of 253 addresses: 9 missing, "
            "91 pods fit"
        ),
        "  Deployment web: 80 pods, and 20 more while it rolls out",
        "  now: batch 4, 192 of 253 reserved",
        "  then: batch 1; starved: nodes keep no free address",
        "  first to give way: the batch, from 4 to 2, with pod 27 of 100",
        (
            "  to make room: roll out with a smaller maxSurge: without one it fits, or add a /28 to the subnet; no smaller batch "
            "does, as nodes keep nothing free then"
        ),
    ]


def test_workloads_in_words(podtide: Run, manifests: Manifests) -> None:
    on_host = of_kind("DaemonSet", template={"spec": {"hostNetwork": True}})
    in_shop = of_kind("StatefulSet", replicas=1)
    in_shop["metadata"]["namespace"] = "shop"
    outcome = podtide("plan", "fit", "-f", manifests.file(on_host, in_shop), "--nodes", "1", *NUMBERS)
    assert outcome.out.splitlines() == [
        "fits: 1 pod and 1 node more in the subnet need at least 164 of 253 addresses",
        "  DaemonSet it: on the host network, no address",
        "  StatefulSet shop/it: 1 pod",
        "  now: batch 4, 192 of 253 reserved",
        "  then: batch 4",
        "  first to give way: nothing",
    ]


def test_a_daemon_set_runs_on_new_nodes_too(podtide: Run, manifests: Manifests) -> None:
    _, found = fit(podtide, "-f", manifests.file(of_kind("DaemonSet")), "--nodes", "3", *NUMBERS)
    assert found["new_pods"] == 15


def test_without_nodes_no_pod_finds_a_place(podtide: Run) -> None:
    outcome = podtide("plan", "fit", "--pods", "3", "--capacity", "253")
    assert outcome.status == 1
    assert outcome.out.startswith("does not fit: 3 of 3 pods find no node that may have more addresses\n")
    assert "to make room: add nodes\n" in outcome.out


def test_an_exhausted_subnet_is_told(podtide: Run) -> None:
    flags = ("--capacity", "100", "--running-nodes", "10", "--running-pods", "70", "--batch", "1")
    outcome = podtide("plan", "fit", "--pods", "2", *flags)
    assert outcome.out.splitlines()[1:] == [
        "  now: batch 1, 90 of 100 reserved",
        "  then: batch 1; exhausted",
        "  first to give way: the subnet is exhausted, with pod 1 of 2",
    ]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("", "say what is to run: manifests by -f FILE, or --pods and --nodes"),
        ("--pods 3", "say which subnet: --allocator or --database, or its --capacity"),
        ("--pods -3 --capacity 9", "--pods=-3 is refused"),
        ("--nodes x --capacity 9", "--nodes=x is refused"),
        ("--pods 3 --capacity 0", "capacity 0 is refused"),
        ("--pods 3 --capacity 9 --running-pods 3", "3 running pods on 0 nodes is refused"),
        ("--pods 3 --capacity 9 --batch 0", "batch 0 is too small"),
        ("--pods 3 --capacity 9 --batch 900", "batch 900 is more than the 250"),
        ("--pods 3 --subnet blue/pods --capacity 9", "--subnet is a subnet of an allocator"),
        ("--pods 3 --capacity 9 --database sqlite:///x.db", "are for a subnet without an allocator"),
        ("--pods 3 --from-cluster --capacity 9 --running-pods 3", "--from-cluster counts pods and nodes"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_sentence(podtide: Run, flags: str, words: str) -> None:
    outcome = podtide("plan", "fit", *flags.split())
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1), outcome.err
    assert words in outcome.err


# --- an allocator


BOUNDS = Bounds(batch=16, buffer="0.5", lower="0.8", upper="0.9")


async def fill(url: str, batch: int, *subnets: str, bounds: Bounds = BOUNDS) -> None:
    """Subnets of a /24 each; in the first of them are seven nodes of 12 pods, and that batch is in force."""
    async with await open_allocator(url, clock=SystemClock(), migrate=True) as allocator:
        for number, name in enumerate(subnets):
            await allocator.add_subnet(SubnetSpec(network="blue", name=name, cidrs=(f"10.0.{number}.0/24",)))
        statement = Statement(
            demand=12, batch=batch, buffer=Fraction(1, 2), max_ips=250, primaries=1, request=0, top=16
        )
        request = request_at(12, statement.scaler, 1)
        for number in range(7):
            stated = stated_demand(replace(statement, request=request))
            await allocator.put_container(a_wish(f"n{number}", request, subnet=subnets[0], stated=stated))
        await allocator.set_bounds("blue", subnets[0], cluster="east", bounds=bounds)
        before = await allocator.get_subnet("blue", subnets[0])
        in_force = replace(before.in_force, batch=batch, buffer="0.5", top=16)
        await allocator.put_in_force("blue", subnets[0], in_force)


def database(tmp_path: Path, batch: int, *subnets: str) -> tuple[str, str]:
    url = f"sqlite:///{tmp_path / 'subnets.db'}"
    asyncio.run(fill(url, batch, *(subnets or ("pods",))))
    return "--database", url


def test_below_the_top_batch_the_allocator_knows_exactly_how_many_pods_there_are(
    podtide: Run, tmp_path: Path
) -> None:
    where = database(tmp_path, 4)
    room = 253 - 7 * 13
    outcome, found = fit(podtide, "--pods", str(room), *where)
    assert (outcome.status, found["subnet"], found["needed"]) == (0, "blue/pods", {"least": 253, "most": 253})
    assert fit(podtide, "--pods", str(room + 1), *where)[0].status == 1


def test_at_the_top_batch_it_may_not_be_certain(podtide: Run, tmp_path: Path) -> None:
    where = database(tmp_path, 16)
    outcome = podtide("plan", "fit", "--pods", "100", *where)
    assert outcome.status == 1
    assert outcome.out.splitlines() == [
        "not certain: 100 pods more in blue/pods need at least 170 to 275 of 253 addresses, by how many pods its nodes have",
        "  now: batch 16, 224 of 253 reserved",
        "  then: batch 1 to 16, by where the pods land; it may be starved: nodes keep no free address",
        "  first to give way: the batch, from 16 to 8, with pod 1 of 100",
        "  to make room: add a /27 to the subnet; nodes state how many pods they have once the batch is below 16",
    ]
    assert fit(podtide, "--pods", "78", *where)[0].status == 0


def test_a_batch_that_is_pinned_is_told_where_a_smaller_one_would_make_room(
    podtide: Run, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'subnets.db'}"
    asyncio.run(fill(url, 8, "pods", bounds=replace(BOUNDS, fixed=8)))
    outcome = podtide("plan", "fit", "--pods", "150", "--database", url)
    assert outcome.out.splitlines()[-1] == (
        "  the batch is to be 8 or more, so that a smaller one is in force only after pods have waited: allow it before"
    )


def test_a_subnet_is_named_where_there_are_several(podtide: Run, tmp_path: Path) -> None:
    where = database(tmp_path, 4, "pods", "more")
    outcome = podtide("plan", "fit", "--pods", "1", *where)
    assert outcome.err == (
        "podtide: say which subnet by --subnet NETWORK/NAME: the allocator has blue/more, blue/pods\n"
    )
    assert fit(podtide, "--pods", "1", "--subnet", "blue/pods", *where)[0].status == 0
    outcome, found = fit(podtide, "--pods", "250", "--nodes", "2", "--subnet", "blue/more", *where)
    assert (outcome.status, found["needed"]["most"]) == (0, 252)


@pytest.mark.parametrize(
    ("subnet", "words"),
    [
        ("pods", "--subnet 'pods' is refused: give NETWORK/NAME"),
        ("blue/", "the name of --subnet '' is not a valid Kubernetes name"),
        ("blue/none", "none"),
    ],
)
def test_a_subnet_that_is_none(podtide: Run, tmp_path: Path, subnet: str, words: str) -> None:
    outcome = podtide("plan", "fit", "--pods", "1", "--subnet", subnet, *database(tmp_path, 4))
    assert (outcome.status in {1, 2}, outcome.err.count("\n")) == (True, 1)
    assert words in outcome.err


# --- a cluster


async def draw(drawn: DrawnCluster) -> None:
    """Two nodes, with three pods of web and one of its own."""
    for name in ("one", "two"):
        await drawn.node(name)
    for number in range(3):
        labels = {"app": "web"}
        made = Pod(
            metadata=ObjectMeta(name=f"web-{number}", namespace="default", labels=labels),
            spec=PodSpec(node_name="one", containers=[PodContainer(name="main", image="none")]),
        )
        await drawn.cluster.create(made, manager="test")
    await drawn.pod("own", "two")


def test_what_runs_already_is_not_counted_twice(podtide: Run, manifests: Manifests, tmp_path: Path) -> None:
    with served(draw, tmp_path) as kubeconfig:
        outcome, found = fit(
            podtide,
            *("-f", manifests.file(deployment(replicas=4)), "--capacity", "8"),
            *("--from-cluster", "--kubeconfig", str(kubeconfig)),
        )
        text = podtide(
            *("plan", "fit", "-f", manifests.file(deployment(replicas=4)), "--capacity", "20"),
            *("--from-cluster", "--kubeconfig", str(kubeconfig)),
        ).out
    assert outcome.status == 0  # two nodes, four pods, one more, and one while it rolls out
    assert (found["needed"]["most"], found["new_pods"], found["new_pods_of_rollouts"]) == (8, 2, 1)
    assert "  Deployment web: 4 pods, and 1 more while it rolls out; 3 run already" in text.splitlines()


def test_a_plan_for_the_mix_of_a_live_cluster(podtide: Run, tmp_path: Path) -> None:
    with served(draw, tmp_path) as kubeconfig:
        flags = ("--from-cluster", "--kubeconfig", str(kubeconfig), "-o", "json")
        as_it_is, ten_times = podtide("plan", *flags), podtide("plan", "--nodes", "20", *flags)
    assert json.loads(as_it_is.out)["rest"] == {"nodes": 2, "pods": 4, "gone_nodes": 0}
    assert json.loads(ten_times.out)["rest"] == {"nodes": 20, "pods": 40, "gone_nodes": 0}
