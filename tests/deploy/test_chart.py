"""The chart says what the programs understand, and what is generated from something else is equal to it."""

import hashlib
import json
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.chart import Chart, Document, one
from deploy.monitoring import dashboard
from manifests import CHART, NAMESPACE, generated
from podtide import __version__
from podtide.allocator.service.tokens import read_tokens
from podtide.cli import podtide
from podtide.resources.metadata_keys import (
    DOUBT_ANNOTATION,
    NETWORK_ANNOTATION,
    NODE_ANNOTATION,
    STATEMENT_ANNOTATION,
    SYSTEM_NAMESPACE,
    UNREQUESTED_ANNOTATION,
    WAITING_PODS_ANNOTATION,
)

ROOT = Path(__file__).parent.parent.parent
ALL_ON: dict[str, Any] = {
    "serviceMonitor__enabled": True,
    "grafanaDashboard__enabled": True,
    "allocator__database__urlSecret": "database",
    "allocator__tlsSecret": "certificate",
    "controller__allocator__caSecret": "authority",
    "subnetV6": "pods-v6",
    "agent__listen": "127.0.0.1:10090",
    "agent__cnsStateFile": "/var/run/azure-cns/azure-endpoints.json",
    "agent__podAnnotations": {"example.org/team": "network"},
    "cni__forWhereabouts": True,
    "cni__cniVersion": "1.1.0",
    "cni__routes": ["0.0.0.0/0", "::/0"],
    "settings": {"batch": 8, "shrink_delay": "5s", "buffer": 0.25},
}
ADDITIONS: dict[str, Any] = {
    "extraArgs": ["--log-level=debug"],
    "extraEnv": [
        {"name": "PODTIDE_BATCH", "value": "24"},
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "more", "key": "secret"}}},
    ],
    "extraVolumes": [{"name": "extra", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "extra", "mountPath": "/extra"}],
}
"""What an operator adds to a program."""
DIGEST = f"sha256:{'0a1b2c3d' * 8}"
WORKLOADS = {"DaemonSet", "Deployment", "StatefulSet", "Job"}
SUBNETS: list[dict[str, Any]] = [
    {"cidr": "10.1.0.0/16"},
    {"name": "more", "network": "blue", "cidrs": ["10.2.0.0/24", "10.3.0.0/24"], "gateway": "10.2.0.9"},
    {"name": "pods-v6", "cidr": "fd00::/64", "keepBackFirst": 3, "keepBack": ["fd00::aa"]},
]
VARIANTS: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "with everything": ALL_ON,
    "with an allocator elsewhere": {
        "allocator__enabled": False,
        "controller__allocator__url": "https://allocator.example.org",
    },
    "in an IPv6 cluster": {"listenAddress": "[::]", "cni__routes": ["::/0"]},
    "with SQLite on a node's disk": {"allocator__persistence__hostPath": "/var/lib/podtide-subnets"},
    "without installing a network": {"cni__install": False},
    "with a bridge": {"cni__type": "bridge"},
    "with a bridge that is not installed": {"cni__type": "bridge", "cni__install": False},
    "beside another primary network": {"agent__nodePool": False, "cni__forWhereabouts": True},
    "about to leave": {"cni__remove": True},
    "without secondary networks": {"secondaryNetworks__enabled": False},
    "without ClusterSubnets": {"controller__clusterSubnets": False},
    "removed nodes held": {"controller__holdRemovedNodes": True},
    "with subnets": {"subnets": SUBNETS, "controller__allocator__caSecret": "authority"},
    "with Secrets of one's own": {
        "controller__allocator__tokenSecret": "mine",
        "allocator__tokensSecret": "hashes",
    },
    "with additions": {
        f"{program}__{name}": value
        for program in ("agent", "controller", "allocator")
        for name, value in ADDITIONS.items()
    },
    "with placement": {
        "placement__enabled": True,
        "placement__taint": "always",
        "placement__networks": [{"attachment": "default/blue", "network": "blue"}],
    },
    "with placement of labelled namespaces alone": {
        "placement__enabled": True,
        "placement__pods": "labelled",
        "subnetV6": "pods-v6",
    },
    "with another name, and an image by its digest": {"nameOverride": "ipam", "image__digest": DIGEST},
}


@pytest.mark.parametrize("values", [(), ("--set=serviceMonitor.enabled=true,grafanaDashboard.enabled=true",)])
def test_helm_has_nothing_to_object_to(chart: Chart, values: tuple[str, ...]) -> None:
    verdict = chart.lint(*values)
    assert verdict.returncode == 0, verdict.stdout
    assert "0 chart(s) failed" in verdict.stdout


def test_what_is_generated_is_what_it_is_made_from(chart: Chart) -> None:
    for path, text in generated(chart.program).items():
        assert path.read_text() == text, f"{path.relative_to(ROOT)} is out of date: run `make manifests`"
    assert set((CHART / "crds").iterdir()) <= set(generated(chart.program))


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_every_program_understands_how_it_is_started(chart: Chart, values: dict[str, Any]) -> None:
    for container in containers(chart.objects(**values)):
        name, *arguments = container["args"]
        variables = {each["name"]: str(each.get("value", "given")) for each in container.get("env", ())}
        command = podtide.get_command(podtide.make_context("podtide", [name]), name)
        assert command is not None
        with pytest.MonkeyPatch.context() as patch:
            for variable, value in variables.items():
                patch.setenv(variable, value)
            patch.setattr(Path, "exists", lambda _path: True)  # a pod's volumes are not mounted here
            command.make_context(name, arguments)  # refuses what it does not know, and what it lacks
        assert not [argument for argument in arguments if argument.endswith("=")]


def containers(objects: list[Document]) -> Iterator[Document]:
    """The containers of all pods that there will be, as far as they run podtide."""
    for document in objects:
        if document["kind"] in WORKLOADS:
            pod = document["spec"]["template"]["spec"]
            yield from (
                each for each in (*pod.get("initContainers", ()), *pod["containers"]) if "args" in each
            )


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_nobody_is_root_but_who_writes_on_the_node_and_nobody_has_more_than_that(
    chart: Chart, values: dict[str, Any]
) -> None:
    objects = chart.objects(**values)
    for document in objects:
        if document["kind"] not in WORKLOADS:
            continue
        pod = document["spec"]["template"]["spec"]
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            confined = container["securityContext"]
            has_bridge = container["name"] == "agent" and "--network-type=bridge" in container["args"]
            rights = {"add": ["NET_ADMIN"]} if has_bridge else {}
            assert confined["capabilities"] == {"drop": ["ALL"], **rights}
            assert confined["readOnlyRootFilesystem"] is True
            assert confined["allowPrivilegeEscalation"] is False
            is_root = (pod["securityContext"] | confined).get("runAsUser") == 0
            assert is_root is (container["name"] in {"agent", "remover"})
    assert "podtide-allocator" not in granted_to(objects)


def test_who_removes_a_bridge_may(chart: Chart) -> None:
    for type_, more in (("bridge", {"add": ["NET_ADMIN"]}), ("ptp", {})):
        remover = one(chart.objects(cni__remove=True, cni__type=type_), "DaemonSet", "podtide-remover")
        [container] = remover["spec"]["template"]["spec"]["initContainers"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], **more}


def granted_to(objects: list[Document]) -> set[str]:
    """The accounts that are bound to any role."""
    bindings = [document for document in objects if document["kind"] in {"RoleBinding", "ClusterRoleBinding"}]
    return {subject["name"] for binding in bindings for subject in binding["subjects"]}


def test_no_role_has_a_wildcard(chart: Chart) -> None:
    roles = [each for each in chart.objects() if each["kind"] in {"Role", "ClusterRole"}]
    assert roles
    for role in roles:
        for rule in role["rules"]:
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]


def test_pod_ro_reads_pods_and_nothing_else(chart: Chart) -> None:
    role = one(chart.objects(), "ClusterRole", "pod-ro")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]


def test_the_leaders_lease_is_shipped_released_and_then_left_to_its_holder(chart: Chart) -> None:
    lease = one(chart.objects(), "Lease", "podtide-controller")
    assert lease["spec"] == {"leaseDurationSeconds": 1}
    assert lease["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_tokens_and_what_the_leader_needs_to_give_its_lease_up_outlive_the_release_and_nothing_else(
    chart: Chart,
) -> None:
    objects = chart.objects()
    kept = {
        (each["kind"], each["metadata"]["name"])
        for each in objects
        if "helm.sh/resource-policy" in each["metadata"].get("annotations", {})
    }
    assert kept == {
        ("ServiceAccount", "podtide-controller"),
        ("Lease", "podtide-controller"),
        ("Role", "podtide-controller-lease"),
        ("RoleBinding", "podtide-controller-lease"),
        ("Secret", "podtide-allocator-token"),
        ("Secret", "podtide-allocator-tokens"),
        ("Secret", "podtide-admin-token"),
    }
    (rule,) = one(objects, "Role", "podtide-controller-lease")["rules"]
    assert (rule["resourceNames"], rule["verbs"]) == (["podtide-controller"], ["get", "update"])


def test_a_slow_start_is_not_taken_for_a_program_that_hangs(chart: Chart) -> None:
    for values in ({}, ALL_ON):
        started = list(containers(chart.objects(**values)))
        assert len(started) == 3
        for container in started:
            startup, liveness = container["startupProbe"], container["livenessProbe"]
            assert startup["httpGet"] == liveness["httpGet"], container["name"]
            assert startup["failureThreshold"] * startup["periodSeconds"] >= 300


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_containers_run_podtide_and_nothing_else_of_the_image(chart: Chart, values: dict[str, Any]) -> None:
    """As a container's first process a `sleep` would ignore SIGTERM, and an image need not have a shell."""
    for document in chart.objects(**values):
        if document["kind"] in WORKLOADS:
            pod = document["spec"]["template"]["spec"]
            for container in (*pod.get("initContainers", ()), *pod["containers"]):
                assert "command" not in container, container["name"]
                assert container["args"], container["name"]


@pytest.mark.parametrize("version", ["1.0.0", "1.1.0"])
def test_agents_install_a_network_of_the_version_that_is_wanted(chart: Chart, version: str) -> None:
    (agent,) = [
        each for each in containers(chart.objects(cni__cniVersion=version)) if each["name"] == "agent"
    ]
    assert f"--cni-version={version}" in agent["args"]


def test_an_agent_runs_on_every_node_whatever_its_taints_and_before_there_is_a_network(chart: Chart) -> None:
    pod = one(chart.objects(), "DaemonSet", "podtide-agent")["spec"]["template"]["spec"]
    assert pod["hostNetwork"] is True
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["priorityClassName"] == "system-node-critical"


def test_the_nodes_directories_are_where_the_values_say(chart: Chart) -> None:
    objects = chart.objects(cniBinHostPath="/usr/libexec/cni", cniConfHostPath="/etc/other/net.d")
    pod = one(objects, "DaemonSet", "podtide-agent")["spec"]["template"]["spec"]
    there = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"]}
    here = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    assert (there["cni-bin"], there["cni-conf"]) == ("/usr/libexec/cni", "/etc/other/net.d")
    assert f"--cni-bin-directory={here['cni-bin']}" in pod["containers"][0]["args"]
    assert f"--cni-conf-directory={here['cni-conf']}" in pod["containers"][0]["args"]


def test_agents_may_read_the_directory_of_cns_state_file_and_have_none_without(chart: Chart) -> None:
    objects = chart.objects(agent__cnsStateFile="/var/run/azure-cns/azure-endpoints.json")
    pod = one(objects, "DaemonSet", "podtide-agent")["spec"]["template"]["spec"]
    (there,) = [volume["hostPath"]["path"] for volume in pod["volumes"] if volume["name"] == "cns-state"]
    (here,) = [each for each in pod["containers"][0]["volumeMounts"] if each["name"] == "cns-state"]
    assert (there, here["readOnly"]) == ("/var/run/azure-cns", True)
    assert f"--cns-state-file={here['mountPath']}/azure-endpoints.json" in pod["containers"][0]["args"]
    without = str(one(chart.objects(), "DaemonSet", "podtide-agent"))
    assert "cns-state" not in without


def test_settings_reach_every_program(chart: Chart) -> None:
    started = list(containers(chart.objects(settings={"batch": 8, "leak_grace": "10m", "buffer": 0.25})))
    assert len(started) == 3
    for container in started:
        variables = {each["name"]: each.get("value") for each in container["env"]}
        assert (variables["PODTIDE_BATCH"], variables["PODTIDE_LEAK_GRACE"]) == ("8", "10m")
        assert variables["PODTIDE_BUFFER"] == "0.25"


def secrets_of(objects: list[Document]) -> dict[str, str]:
    """What is in the Secrets that are made."""
    return {
        each["metadata"]["name"]: b64decode(text).decode()
        for each in objects
        if each["kind"] == "Secret"
        for text in each["data"].values()
    }


def test_the_allocator_knows_the_tokens_that_are_made_and_no_two_installations_have_the_same(
    chart: Chart, tmp_path: Path
) -> None:
    made = secrets_of(chart.objects(clusterName="east"))
    file = tmp_path / "tokens"
    file.write_text(made["podtide-allocator-tokens"])
    holders = dict(read_tokens(file))
    for name, holder in (
        ("podtide-allocator-token", "cluster east"),
        ("podtide-admin-token", "administration"),
    ):
        assert len(made[name]) == 64
        assert str(holders.pop(hashlib.sha256(made[name].encode()).digest())) == holder
    assert not holders
    assert not set(secrets_of(chart.objects(clusterName="east")).values()) & set(made.values())


@pytest.mark.parametrize("variant", ["with Secrets of one's own", "with an allocator elsewhere"])
def test_no_token_is_made_for_who_has_tokens(chart: Chart, variant: str) -> None:
    assert not secrets_of(chart.objects(**VARIANTS[variant]))


def test_there_is_no_secret_in_the_plain_manifests() -> None:
    text = (CHART.parent / "manifests" / "podtide.yaml").read_text()
    assert not [
        each for each in yaml.safe_load_all(text) if each and each["kind"] in {"Secret", "Job", "Pod"}
    ]


def job(objects: list[Document]) -> Document:
    (found,) = [each for each in objects if each["kind"] == "Job"]
    return found


def test_subnets_are_added_one_after_the_other_before_any_node_is_ready(chart: Chart) -> None:
    pod = job(chart.objects(subnets=SUBNETS))["spec"]["template"]["spec"]
    assert (pod["hostNetwork"], pod["tolerations"]) == (True, [{"operator": "Exists"}])
    assert pod["volumes"] == [{"name": "token", "secret": {"secretName": "podtide-admin-token"}}]
    added = [each["args"] for each in (*pod["initContainers"], *pod["containers"])]
    assert [arguments[6:] for arguments in added] == [
        ["default", "pods", "10.1.0.0/16"],
        ["--gateway=10.2.0.9", "blue", "more", "10.2.0.0/24", "10.3.0.0/24"],
        ["--keep-back=fd00::aa", "--keep-back-first=3", "default", "pods-v6", "fd00::/64"],
    ]


def test_other_subnets_are_another_job_and_the_same_ones_the_same(chart: Chart) -> None:
    def name(subnets: list[dict[str, Any]]) -> str:
        named: str = job(chart.objects(subnets=subnets))["metadata"]["name"]
        return named

    assert name(SUBNETS) == name(SUBNETS) != name(SUBNETS[:2])


def test_what_helm_tests_understands_how_it_is_started_and_is_confined(chart: Chart) -> None:
    pods = chart.test_pods()
    assert [pod["metadata"]["name"] for pod in pods] == ["podtide-test-address", "podtide-test-check"]
    address, check = (pod["spec"] for pod in pods)
    assert "hostNetwork" not in address, "it is to get an address"
    assert check["hostNetwork"] is True, "it says what is wrong also where no pod gets one"
    for pod in (address, check):
        assert pod["securityContext"]["runAsNonRoot"] is True
        (container,) = pod["containers"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert "command" not in container


def test_on_sqlite_there_is_one_allocator_with_a_volume_and_no_budget(chart: Chart) -> None:
    objects = chart.objects()
    spec = one(objects, "StatefulSet", "podtide-allocator")["spec"]
    assert spec["replicas"] == 1
    assert [claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]] == ["subnets"]
    budgets = [each["metadata"]["name"] for each in objects if each["kind"] == "PodDisruptionBudget"]
    assert budgets == ["podtide-controller"]


def test_on_postgresql_there_are_several_and_the_url_is_a_secret(chart: Chart) -> None:
    objects = chart.objects(allocator__database__urlSecret="database")
    spec = one(objects, "Deployment", "podtide-allocator")["spec"]
    assert spec["replicas"] == 2
    variables = spec["template"]["spec"]["containers"][0]["env"]
    secret = {"secretKeyRef": {"name": "database", "key": "url"}}
    assert {"name": "PODTIDE_DATABASE", "valueFrom": secret} in variables
    one(objects, "PodDisruptionBudget", "podtide-allocator")


def test_every_monitor_finds_a_service_and_every_service_its_pods(chart: Chart) -> None:
    objects = chart.objects(**ALL_ON)
    services = [each for each in objects if each["kind"] == "Service"]
    monitors = [each for each in objects if each["kind"] == "ServiceMonitor"]
    templates = [each["spec"]["template"] for each in objects if "template" in each.get("spec", {})]
    assert len(monitors) == len(templates) == 3
    for monitor in monitors:
        (service,) = [each for each in services if selects(monitor["spec"]["selector"]["matchLabels"], each)]
        (endpoint,) = monitor["spec"]["endpoints"]
        (port,) = [each for each in service["spec"]["ports"] if each["name"] == endpoint["port"]]
        (template,) = [each for each in templates if selects(service["spec"]["selector"], each)]
        ports = {each["name"]: each["containerPort"] for each in template["spec"]["containers"][0]["ports"]}
        assert ports[port["targetPort"]] == port["port"]


def selects(selector: Mapping[str, str], document: Document) -> bool:
    labels: Mapping[str, str] = document["metadata"]["labels"]
    return selector.items() <= labels.items()


def test_the_dashboard_is_that_of_the_chart(chart: Chart) -> None:
    config_map = one(chart.objects(grafanaDashboard__enabled=True), "ConfigMap", "podtide-dashboard")
    assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(config_map["data"]["podtide.json"]) == dashboard()


def test_the_chart_is_of_this_release() -> None:
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == __version__


@pytest.mark.parametrize(
    ("policy", "marks"),
    [
        (
            "nodenetworkconfigs",
            {WAITING_PODS_ANNOTATION, STATEMENT_ANNOTATION, DOUBT_ANNOTATION, UNREQUESTED_ANNOTATION},
        ),
        ("ippools", {NODE_ANNOTATION}),
        ("slices", {NODE_ANNOTATION, NETWORK_ANNOTATION}),
        ("leases", set()),
        ("slice-leases", {NETWORK_ANNOTATION}),
        ("reservations", {NODE_ANNOTATION}),
    ],
)
def test_the_policies_go_by_the_marks_that_programs_make(chart: Chart, policy: str, marks: set[str]) -> None:
    spec = one(chart.objects(), "ValidatingAdmissionPolicy", f"podtide-agent-{policy}")["spec"]
    assert set(re.findall(r"podtide\.io/[-\w]+", json.dumps(spec))) == marks


def test_without_secondary_networks_the_controller_may_delete_no_lease_and_needs_no_policy(
    chart: Chart,
) -> None:
    objects = chart.objects(secondaryNetworks__enabled=False)
    names = {each["metadata"]["name"] for each in objects}
    assert not names & {"podtide-controller-networks", "podtide-controller-leases"}
    roles = [each for each in objects if each["kind"] in {"Role", "ClusterRole"}]
    (leases,) = [
        rule
        for role in roles
        if role["metadata"]["name"].startswith("podtide-controller")
        for rule in role["rules"]
        if rule["resources"] == ["leases"]
    ]
    assert (leases["resourceNames"], leases["verbs"]) == (["podtide-controller"], ["get", "update"])


@pytest.mark.parametrize("wanted", [True, False])
def test_the_controller_makes_cluster_subnets_if_wanted_and_else_may_only_silence_those_left_over(
    chart: Chart, wanted: bool
) -> None:
    objects = chart.objects(controller__clusterSubnets=wanted)
    (container,) = [each for each in containers(objects) if each["name"] == "controller"]
    flags = {"--cluster-subnets", "--no-cluster-subnets"} & set(container["args"])
    assert flags == {"--cluster-subnets" if wanted else "--no-cluster-subnets"}
    role = one(objects, "Role", "podtide-controller")
    verbs = {name: set(rule["verbs"]) for rule in role["rules"] for name in rule["resources"]}
    assert verbs["clustersubnets"] == {"get", "list", "watch"} | ({"create"} if wanted else set())
    assert verbs["clustersubnets/status"] == {"update"}
    assert {"clustersubnetstates", "clustersubnetstates/status"} <= verbs.keys()


def test_every_policy_is_bound_and_refuses(chart: Chart) -> None:
    objects = chart.objects()
    policies = [each["metadata"]["name"] for each in objects if each["kind"] == "ValidatingAdmissionPolicy"]
    assert len(policies) == 8
    for policy in policies:
        spec = one(objects, "ValidatingAdmissionPolicyBinding", policy)["spec"]
        assert (spec["policyName"], spec["validationActions"]) == (policy, ["Deny"])


def test_policies_look_for_slices_where_the_pools_are(chart: Chart) -> None:
    objects = chart.objects(secondaryNetworks__namespace="networks")
    for policy in ("podtide-agent-slices", "podtide-agent-slice-leases"):
        where = one(objects, "ValidatingAdmissionPolicyBinding", policy)["spec"]["paramRef"]
        assert where == {"namespace": "networks", "selector": {}, "parameterNotFoundAction": "Allow"}


def test_roles_are_for_the_namespaces_that_the_programs_use(chart: Chart) -> None:
    assert NAMESPACE == SYSTEM_NAMESPACE
    objects = chart.objects(secondaryNetworks__namespace="networks")
    roles = [each["metadata"] for each in objects if each["kind"] in {"Role", "RoleBinding"}]
    assert {role["namespace"] for role in roles if role["name"].endswith("-networks")} == {"networks"}
    assert {role["namespace"] for role in roles if not role["name"].endswith("-networks")} == {
        SYSTEM_NAMESPACE
    }
    for container in containers(objects):
        if container["name"] != "allocator":
            assert "--networks-namespace=networks" in container["args"]


def test_kubelets_are_kept_from_the_subnet_labels_unless_they_may(chart: Chart) -> None:
    names = {each["metadata"]["name"] for each in chart.objects()}
    without = {each["metadata"]["name"] for each in chart.objects(kubeletsMaySetSubnet=True)}
    assert names - without == {"podtide-node-subnet-labels"}
