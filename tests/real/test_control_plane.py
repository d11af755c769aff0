import ssl
import time
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from control_plane.cluster import ControlPlane
from control_plane.errors import RequestFailed
from control_plane.json_http import JsonHttp
from patience import PATIENCE_SECONDS
from podtide.resources.crds import crds


def config_maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_every_crd_of_podtide_is_established(control_plane: ControlPlane) -> None:
    for document in crds(with_network_attachments=True):
        name = document["metadata"]["name"]
        definition = control_plane.admin.request(
            "GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        )
        conditions = {each["type"]: each["status"] for each in definition["status"]["conditions"]}
        assert conditions["Established"] == "True"
        assert "NonStructuralSchema" not in conditions


def test_without_a_credential_only_health_is_answered(control_plane: ControlPlane) -> None:
    nobody = JsonHttp(
        control_plane.url, ssl.create_default_context(cafile=control_plane.certificate_authority)
    )
    assert nobody.is_up("/readyz")
    with pytest.raises(RequestFailed) as refusal:
        nobody.request("GET", "/api/v1/namespaces")
    assert refusal.value.status == HTTPStatus.UNAUTHORIZED


def test_a_user_without_roles_may_do_nothing(control_plane: ControlPlane) -> None:
    stranger = control_plane.credentials.kubeconfig_for_user("stranger", groups=["strangers"])
    answer = control_plane.kubectl("get", "nnc", "-n", "kube-system", kubeconfig=stranger)
    assert answer.returncode == 1
    assert 'User "stranger" cannot list resource "nodenetworkconfigs"' in answer.stderr


def let_list_pods(control_plane: ControlPlane, namespace: str, subject: str) -> None:
    """Give `--group=…` or `--serviceaccount=…` a role that allows to list the pods of the namespace."""
    in_namespace = f"--namespace={namespace}"
    control_plane.kubectl("create", "role", "pods", "--verb=list", "--resource=pods", in_namespace)
    control_plane.kubectl("create", "rolebinding", "pods", "--role=pods", subject, in_namespace)


def can_list_pods(control_plane: ControlPlane, namespace: str, kubeconfig: Path) -> bool:
    return control_plane.kubectl("get", "pods", "-n", namespace, kubeconfig=kubeconfig).returncode == 0


def test_a_group_in_a_certificate_is_a_group_to_rbac(control_plane: ControlPlane, namespace: str) -> None:
    let_list_pods(control_plane, namespace, "--group=readers")
    member = control_plane.credentials.kubeconfig_for_user("member", groups=["others", "readers"])
    wait_until(lambda: can_list_pods(control_plane, namespace, member))
    assert not can_list_pods(control_plane, "default", member)


def test_a_service_account_s_token_opens_what_its_role_says(
    control_plane: ControlPlane, namespace: str
) -> None:
    let_list_pods(control_plane, namespace, f"--serviceaccount={namespace}:agent")
    agent = control_plane.credentials.kubeconfig_for_service_account(namespace, "agent")
    wait_until(lambda: can_list_pods(control_plane, namespace, agent))
    assert not can_list_pods(control_plane, "default", agent)


@pytest.mark.parametrize("end", [ControlPlane.kill_api_server, ControlPlane.stop_api_server])
def test_an_api_server_that_ended_comes_back_with_its_objects(
    control_plane: ControlPlane, namespace: str, end: Callable[[ControlPlane], None]
) -> None:
    made = control_plane.admin.request("POST", config_maps(namespace), {"metadata": {"name": "kept"}})
    end(control_plane)
    assert not control_plane.admin.is_up("/livez")
    control_plane.start_api_server()
    assert control_plane.admin.request("GET", f"{config_maps(namespace)}/kept") == made


def test_a_killed_etcd_comes_back_with_its_objects(control_plane: ControlPlane, namespace: str) -> None:
    made = control_plane.admin.request("POST", config_maps(namespace), {"metadata": {"name": "kept"}})
    control_plane.kill_etcd()
    control_plane.start_etcd()
    wait_until(lambda: control_plane.admin.is_up("/readyz"))
    assert control_plane.admin.request("GET", f"{config_maps(namespace)}/kept") == made


def test_what_a_test_left_dead_is_revived(control_plane: ControlPlane) -> None:
    control_plane.kill_api_server()
    control_plane.kill_etcd()
    control_plane.revive()
    assert control_plane.admin.is_up("/readyz")


def events_since(control_plane: ControlPlane, path: str, resource_version: str) -> Any:
    return control_plane.admin.request(
        "GET", f"{path}?watch=true&timeoutSeconds=1&resourceVersion={resource_version}"
    )


def test_after_compaction_a_watch_from_before_it_is_gone(control_plane: ControlPlane, namespace: str) -> None:
    # Events, because the API server keeps no cache of them and asks etcd itself.
    path = f"/api/v1/namespaces/{namespace}/events"
    before = control_plane.admin.request("GET", path)["metadata"]["resourceVersion"]
    event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": namespace}}
    control_plane.admin.request("POST", path, event)
    assert events_since(control_plane, path, before)["type"] == "ADDED"
    control_plane.compact()
    assert events_since(control_plane, path, before)["object"]["code"] == HTTPStatus.GONE


def test_expired_history_makes_the_latest_version_of_every_kind_too_old(
    control_plane: ControlPlane, namespace: str
) -> None:
    path = f"/apis/acn.azure.com/v1alpha/namespaces/{namespace}/nodenetworkconfigs"
    latest = control_plane.admin.request("GET", path)["metadata"]["resourceVersion"]
    control_plane.expire_history()
    assert events_since(control_plane, path, latest)["object"]["code"] == HTTPStatus.GONE


def test_the_garbage_collector_takes_what_the_gone_owned(controllers: ControlPlane, namespace: str) -> None:
    admin, path = controllers.admin, config_maps(namespace)
    owner = admin.request("POST", path, {"metadata": {"name": "owner"}})["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"]}
    admin.request("POST", path, {"metadata": {"name": "owned", "ownerReferences": [reference]}})
    admin.request("DELETE", f"{path}/owner")
    wait_until(lambda: not admin.is_up(f"{path}/owned"))


def test_a_deleted_namespace_is_emptied_and_goes(controllers: ControlPlane, namespace: str) -> None:
    controllers.admin.request("POST", config_maps(namespace), {"metadata": {"name": "inside"}})
    controllers.admin.request("DELETE", f"/api/v1/namespaces/{namespace}")
    wait_until(lambda: not controllers.admin.is_up(f"/api/v1/namespaces/{namespace}"))


def test_the_scheduler_binds_a_pod_to_a_node_with_room(scheduler: ControlPlane, namespace: str) -> None:
    admin, pods = scheduler.admin, f"/api/v1/namespaces/{namespace}/pods"
    # room for what other tests left unbound, too
    node = {"metadata": {"name": f"node-{namespace}"}, "status": {"allocatable": {"pods": "1000"}}}
    admin.request("POST", "/api/v1/nodes", node)
    spec = {
        "containers": [{"name": "main", "image": "registry.invalid/nothing"}],
        "tolerations": [{"operator": "Exists"}],  # no kubelet ever says that the node is ready
    }
    admin.request("POST", pods, {"metadata": {"name": "web"}, "spec": spec})
    wait_until(lambda: "nodeName" in admin.request("GET", f"{pods}/web")["spec"])
    admin.request("DELETE", f"/api/v1/nodes/node-{namespace}")
