"""The remover: a DaemonSet that takes podtide's files off every node which had an agent.

It is made from the agents' own DaemonSet, so that it runs on the same nodes, from an image that is there already, and finds
the runtime's directories where the chart was told they are. It works in an init container: a pod that is ready has removed.

The parents of the agent's two directories are mounted, and not these themselves: what is mounted cannot be removed.
"""

from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct, structs

from podtide.agent.node_files import SOCKET
from podtide.resources.base import ObjectMeta
from podtide.resources.installed_kinds import DaemonSet, DaemonSetSpec, LabelSelector
from podtide.resources.metadata_keys import COMPONENT_LABEL, NAME_LABEL, PODTIDE

REMOVER = "podtide-uninstall"
COMPONENT = "uninstall"
LABELS = {NAME_LABEL: PODTIDE, COMPONENT_LABEL: COMPONENT}
STATE_DIRECTORY = PurePosixPath("/var/lib/podtide")
SOCKET_PATH = PurePosixPath("/run/podtide") / SOCKET
_HOST = PurePosixPath("/host")
_DEFAULT_DIRECTORIES = {"cni-bin": "/opt/cni/bin", "cni-conf": "/etc/cni/net.d"}
"""By the names of the chart's volumes."""
_COPIED = ("priorityClassName", "nodeSelector", "tolerations", "affinity", "imagePullSecrets")
_NOWHERE = {"podtide.io/uninstall": "when-agents-have-ended"}
"""A label that no Node has."""
_EVERY_NODE = {"priorityClassName": "system-node-critical", "tolerations": [{"operator": "Exists"}]}


class RemoverImage(Struct, frozen=True):
    """What the remover runs, and when it is pulled."""

    name: str
    pull_policy: str = "IfNotPresent"


def remover(namespace: str, *, image: str = "", agents: DaemonSet | None = None) -> DaemonSet:
    """The remover in place of these agents; `image` goes before theirs, and has to be given where there are none."""
    pod = agents.spec.template.get("spec", {}) if agents else _EVERY_NODE
    runs = RemoverImage(image) if image else _image_of(pod)
    directories = _DEFAULT_DIRECTORIES | _directories_of(pod)
    spec = {
        "nodeSelector": {},
        **{name: pod[name] for name in _COPIED if name in pod},
        "automountServiceAccountToken": False,
        "hostNetwork": True,  # it takes the node's network away, and the bridge is the node's
        "terminationGracePeriodSeconds": 5,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "initContainers": [_removing(runs, directories)],
        "containers": [_done(runs)],
        "volumes": _volumes(directories),
    }
    return DaemonSet(
        metadata=ObjectMeta(name=REMOVER, namespace=namespace, labels=LABELS),
        spec=DaemonSetSpec(
            selector=LabelSelector(match_labels=LABELS),
            template={"metadata": {"labels": LABELS}, "spec": spec},
        ),
    )


def _image_of(pod: dict[str, Any]) -> RemoverImage:
    """What the agents run, or the chart's own remover (`cni.remove`)."""
    container = [*pod.get("containers", []), *pod.get("initContainers", [])][0]
    return RemoverImage(container["image"], container.get("imagePullPolicy", "IfNotPresent"))


def _directories_of(pod: dict[str, Any]) -> dict[str, str]:
    return {
        volume["name"]: volume["hostPath"]["path"]
        for volume in pod.get("volumes", [])
        if volume.get("name") in _DEFAULT_DIRECTORIES and "hostPath" in volume
    }


def _removing(runs: RemoverImage, directories: dict[str, str]) -> dict[str, Any]:
    return {
        "name": "remover",
        "image": runs.name,
        "imagePullPolicy": runs.pull_policy,
        "args": [
            "uninstall-cni",
            f"--cni-bin-directory={_HOST}/cni-bin",
            f"--cni-conf-directory={_HOST}/cni-conf",
            f"--state-directory={_HOST}/state/{STATE_DIRECTORY.name}",
            f"--socket-directory={_HOST}/sockets/{SOCKET_PATH.parent.name}",
        ],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]},  # for the bridge
        },
        "volumeMounts": [
            *({"name": name, "mountPath": f"{_HOST}/{name}"} for name in directories),
            {"name": "state", "mountPath": f"{_HOST}/state"},
            {"name": "sockets", "mountPath": f"{_HOST}/sockets"},
        ],
    }


def _done(runs: RemoverImage) -> dict[str, Any]:
    """A DaemonSet's pods may not end: this one waits."""
    return {
        "name": "done",
        "image": runs.name,
        "imagePullPolicy": runs.pull_policy,
        "args": ["wait"],
        "securityContext": {
            "runAsUser": 65532,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _volumes(directories: dict[str, str]) -> list[dict[str, Any]]:
    # Without a type nothing is checked and nothing is made but by the runtime: a node without them has nothing to remove.
    paths = {**directories, "state": str(STATE_DIRECTORY.parent), "sockets": str(SOCKET_PATH.parent.parent)}
    return [
        {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
        for name, path in paths.items()
    ]


def held_back(made: DaemonSet) -> DaemonSet:
    """The remover on no node: agents have to end first."""
    return _with_selector(made, _selector(made) | _NOWHERE)


def let_go(made: DaemonSet) -> DaemonSet:
    """The remover on the nodes that the agents were on."""
    return _with_selector(
        made, {name: value for name, value in _selector(made).items() if name not in _NOWHERE}
    )


def _selector(made: DaemonSet) -> dict[str, str]:
    return dict(made.spec.template["spec"].get("nodeSelector") or {})


def _with_selector(made: DaemonSet, selector: dict[str, str]) -> DaemonSet:
    pod = {**made.spec.template["spec"], "nodeSelector": selector}
    template = {**made.spec.template, "spec": pod}
    return structs.replace(made, spec=structs.replace(made.spec, template=template))
