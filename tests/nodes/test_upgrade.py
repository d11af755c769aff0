"""podtide is upgraded by docs/upgrading.md on a running cluster, from the commit that `earlier_sources` pins, while pods come and go.

What a restart explains, and nothing else may fail: each node's agent is replaced once, and for these seconds nobody answers the
plugin on that node. A sandbox that is started meanwhile fails with "podtide's agent gave no answer", and the kubelet starts another
one for the same pod. Restarts of the controller and of the allocator fail nothing: agents go on with the addresses they have, and
ADDs wait for what is on its way.
"""

import json
import logging
import re
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from msgspec import Struct

from container_images.context import ROOT, version
from control_plane.errors import CannotBuild
from left_out import leave_out
from node_bench.cluster import NodeCluster, Parts
from node_bench.earlier_podtide import TAG, EarlierInstallation, EarlierPodtide, earlier_cluster
from node_bench.podtide_installation import CHART, DATABASE_DIRECTORY, NAMESPACE, wait_until
from node_bench.programs import say_on_stderr
from node_bench.workloads import Document, Pod
from nodes.audit import agreed, differences, told
from nodes.churn import STEP_SECONDS, churning
from podtide.allocator.store.migration import SCHEMA

LOG = logging.getLogger(__name__)
COMPONENTS = ("agent", "controller", "allocator")
PROGRAMS = ("statefulset/podtide-allocator", "deployment/podtide-controller", "daemonset/podtide-agent")
AWAY = re.compile(r"podtide's agent gave no answer on /run/podtide/agent\.sock: ")
"""What the plugin says where no agent answers, with CNI's code 11 (try again later)."""
QUERY = "SELECT version_num FROM alembic_version"
CALL = timedelta(seconds=20)
"""A call that the agent had taken when it was told to end may wait as long for its answer, and an Event's time is in whole seconds."""


class Upgradable(Struct, frozen=True):
    """A cluster with the earlier podtide, and how that was installed."""

    cluster: NodeCluster
    installation: EarlierInstallation


class Restart(Struct, frozen=True):
    """When a node was without an agent."""

    began: datetime
    ended: datetime

    def explains(self, event: Document) -> bool:
        """Whether a sandbox failed because of it."""
        seen = [at(event[key]) for key in ("firstTimestamp", "lastTimestamp")]
        in_time = all(self.began <= each <= self.ended + CALL for each in seen)
        return in_time and bool(AWAY.search(event["message"]))


@pytest.fixture(scope="module")
def upgradable(
    parts: Parts, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Upgradable]:
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():
            earlier = EarlierPodtide.built(say_on_stderr)
    except CannotBuild as reason:
        leave_out("earlier podtide", reason)
    with earlier_cluster(parts, earlier, tmp_path_factory.mktemp("operator"), ["node-a", "node-b"]) as (
        cluster,
        installation,
    ):
        yield Upgradable(cluster, installation)


def test_an_upgrade_while_pods_come_and_go_fails_nothing_but_what_a_restart_of_the_agent_explains(
    upgradable: Upgradable,
) -> None:
    cluster, installation = upgradable.cluster, upgradable.installation
    workloads = cluster.workloads
    workloads.deploy("steady", 6)
    before = workloads.wait_until_ready("steady", 6)
    wait_until(lambda: not differences(cluster.bench), "agreement before the upgrade", 60)
    images = {image for pod in of_podtide(cluster) for image in images_of(pod)}
    assert all(image.endswith(f":{TAG}") for image in images), images
    assert not workloads.events("FailedCreatePodSandBox")

    with churning(cluster):
        time.sleep(2 * STEP_SECONDS)  # so that pods come and go by the earlier one
        assert not workloads.events("FailedCreatePodSandBox")
        upgrade(installation)
        restarts = agent_restarts(cluster)
        time.sleep(2 * STEP_SECONDS)

    assert {image for pod in of_podtide(cluster) for image in images_of(pod)} == {
        f"docker.io/library/podtide:{version()}"
    }
    failed = workloads.events("FailedCreatePodSandBox")
    unexplained = [event for event in failed if not restarts[event["source"]["host"]].explains(event)]
    assert not unexplained, told_events(unexplained)
    LOG.info("sandboxes that were started again: %d", sum(event["count"] for event in failed))
    assert told(workloads.wait_until_ready("steady", 6)) == told(before)
    agreed(installation)


def test_the_database_is_the_present_ones(upgradable: Upgradable) -> None:
    home = upgradable.cluster.bench.nodes[0].machine
    # On the node: SQLite follows the links of a path, and there they lead elsewhere.
    asked = f"import sqlite3; print(*sqlite3.connect('{DATABASE_DIRECTORY}/subnets.db').execute('{QUERY}'))"
    assert home.run(sys.executable, "-c", asked).strip() == f"('{SCHEMA}',)"
    assert "10.1.0.0/24" in upgradable.installation.administer("subnet", "list")


def test_what_came_with_the_present_chart_works_after_the_upgrade(upgradable: Upgradable) -> None:
    """Subnets by values, which takes the administrator's Secret, and `helm test`."""
    installation = upgradable.installation
    grown = ["10.1.0.0/24", "10.2.0.0/24"]
    helm_upgrade(installation, f"--set-json=subnets={json.dumps([{'cidrs': grown}])}")
    wait_until(
        lambda: ",".join(grown) in installation.administer("subnet", "list"), "a subnet that has grown"
    )
    assert "Succeeded" in installation.test()
    agreed(installation)


def upgrade(installation: EarlierInstallation) -> None:
    """docs/upgrading.md, step by step; all programs are the new ones then."""
    crds = ROOT / "deploy" / "manifests" / "crds.yaml"
    installation.kubectl("apply", "--server-side", "--force-conflicts", f"--filename={crds}")
    installation.kubectl(
        *("create", "secret", "generic", "podtide-admin-token"),
        f"--from-file=token={installation.admin_token}",
    )
    helm_upgrade(installation, f"--set=image.tag={version()}")
    for program in PROGRAMS:
        installation.kubectl("rollout", "status", program, "--timeout=50s")


def helm_upgrade(installation: EarlierInstallation, *options: str) -> None:
    installation.helm("upgrade", "podtide", str(CHART), "--reset-then-reuse-values", *options)


def agent_restarts(cluster: NodeCluster) -> dict[str, Restart]:
    """By node, from when its former agent was told to end until the present one was ready."""
    request = cluster.bench.control_plane.admin.request
    events: list[Document] = request("GET", f"/api/v1/namespaces/{NAMESPACE}/events")["items"]
    ends = {
        event["message"].removeprefix("Deleted pod: "): at(event["firstTimestamp"])
        for event in events
        if event["reason"] == "SuccessfulDelete" and event["involvedObject"]["name"] == "podtide-agent"
    }
    # The kubelet's Events about a pod name the node, also when the pod is gone.
    nodes = {
        event["involvedObject"]["name"]: event["source"]["host"]
        for event in events
        if event["reason"] == "Started" and event["involvedObject"]["kind"] == "Pod"
    }
    began = {nodes[pod]: moment for pod, moment in ends.items()}
    ready = {
        pod.node: at(condition["lastTransitionTime"])
        for pod in of_podtide(cluster, "agent")
        for condition in pod.document["status"]["conditions"]
        if condition["type"] == "Ready"
    }
    assert began.keys() == ready.keys() == {node.name for node in cluster.bench.nodes}
    return {node: Restart(moment, ready[node]) for node, moment in began.items()}


def of_podtide(cluster: NodeCluster, component: str = "") -> list[Pod]:
    """Its own pods that are to stay."""
    label = "app.kubernetes.io/component"
    return [
        pod
        for pod in cluster.workloads.pods(namespace=NAMESPACE)
        if pod.document["metadata"]["labels"].get(label) in ([component] if component else COMPONENTS)
        and "deletionTimestamp" not in pod.document["metadata"]
    ]


def images_of(pod: Pod) -> Iterator[str]:
    return (each["image"] for each in pod.document["status"]["containerStatuses"])


def at(moment: str) -> datetime:
    return datetime.fromisoformat(moment)


def told_events(events: list[Document]) -> str:
    return "\n".join(
        f"{event['source']['host']} {event['firstTimestamp']} to {event['lastTimestamp']} {event['message']}"
        for event in events
    )
