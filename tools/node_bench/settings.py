"""The configuration of a node's programs: what is set differently from their defaults, and why."""

import json
from collections.abc import Sequence
from typing import Any

PAUSE_IMAGE = "localhost/pause:1"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
STATIC_PODS = "/etc/kubernetes/manifests"

# Cgroups are made by the runtime itself, because there is no systemd; and processes of a container in a container may not
# lower their OOM score.
CONTAINERD = f"""
version = 3
[grpc]
  address = "{CONTAINERD_SOCKET}"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{PAUSE_IMAGE}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["/opt/cni/bin"]
  conf_dir = "/etc/cni/net.d"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  SystemdCgroup = false
"""


def kubelet_configuration(*, cgroup: str, certificate_authority: str, max_pods: int) -> str:
    """The kubelet's file."""
    configuration: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "authentication": {"x509": {"clientCAFile": certificate_authority}, "anonymous": {"enabled": False}},
        "authorization": {"mode": "Webhook"},
        "staticPodPath": STATIC_PODS,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "maxPods": max_pods,
        "resolvConf": "",  # no name server is reached from here
        "enforceNodeAllocatable": ["pods"],
        # The disk is this machine's: how full that is says nothing about the node.
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        # The defaults spare an API server of thousands of nodes; a burst of pods is to be podtide's cost, not theirs.
        "kubeAPIQPS": 50,
        "kubeAPIBurst": 100,
        "eventRecordQPS": 0,
    }
    return json.dumps(configuration, indent=2)


def kubelet(name: str, addresses: Sequence[str], kubeconfig: str, configuration: str) -> list[str]:
    """Its command line."""
    return [
        "kubelet",
        f"--hostname-override={name}",
        f"--node-ip={','.join(addresses)}",
        f"--kubeconfig={kubeconfig}",
        f"--config={configuration}",
        "--v=2",
    ]


def kube_proxy(name: str, kubeconfig: str) -> list[str]:
    """Its command line. The limits of connection tracking are this machine's, and are left alone."""
    return [
        "kube-proxy",
        f"--hostname-override={name}",
        f"--kubeconfig={kubeconfig}",
        "--proxy-mode=iptables",
        "--conntrack-max-per-core=0",
        "--conntrack-tcp-timeout-established=0s",
        "--conntrack-tcp-timeout-close-wait=0s",
    ]
