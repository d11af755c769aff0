"""What a node runs: where each program comes from, and what this machine lacks to have it.

kubelet and kube-proxy are of the control plane's version; containerd, the interface plugins and Multus are pinned by modules of
their own in tools/node-programs. runc, iptables and conntrack are Debian's, because runc takes cgo and libseccomp to build.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from msgspec import Struct, structs

from control_plane.binaries import Binaries
from control_plane.errors import CannotBuild
from control_plane.go_toolchain import FindGo, Say
from go_program import GoProgram, executable

MODULES = Path(__file__).parent.parent / "node-programs"
PACKAGES = {
    "runc": "runc",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "nsenter": "util-linux",
}
"""Debian's packages, by the program that is taken from each."""

CONTAINERD = GoProgram(
    name="containerd",
    file="containerd",
    module=MODULES / "containerd",
    source="github.com/containerd/containerd/v2",
    package="github.com/containerd/containerd/v2/cmd/containerd",
    version_variable="github.com/containerd/containerd/v2/version.Version",
    tags=("no_aufs", "no_btrfs", "no_devmapper", "no_zfs"),
)
SHIM = structs.replace(
    CONTAINERD,
    name="containerd's shim",
    file="containerd-shim-runc-v2",
    package="github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
)
CTR = structs.replace(
    CONTAINERD, name="ctr", file="ctr", package="github.com/containerd/containerd/v2/cmd/ctr"
)
MULTUS = GoProgram(
    name="Multus",
    file="multus",
    module=MODULES / "multus",
    source="gopkg.in/k8snetworkplumbingwg/multus-cni.v4",
    package="gopkg.in/k8snetworkplumbingwg/multus-cni.v4/cmd/multus",
)
_PLUGINS = "github.com/containernetworking/plugins"
NEW_PLUGINS = tuple(
    GoProgram(
        name=f"the CNI plugin {name}", file=name, module=MODULES / "plugins", source=_PLUGINS, package=package
    )
    for name, package in {
        "bridge": f"{_PLUGINS}/plugins/main/bridge",
        "host-local": f"{_PLUGINS}/plugins/ipam/host-local",
        "loopback": f"{_PLUGINS}/plugins/main/loopback",
        "macvlan": f"{_PLUGINS}/plugins/main/macvlan",
        "portmap": f"{_PLUGINS}/plugins/meta/portmap",
        "ptp": f"{_PLUGINS}/plugins/main/ptp",
    }.items()
)
"""The interface plugins at a release that knows CNI 1.1; Debian's knows 1.0."""
ALL = (CONTAINERD, SHIM, CTR, *NEW_PLUGINS, MULTUS)


class NodePrograms(Struct, frozen=True):
    """Executables by the names that they are called by on a node."""

    commands: dict[str, Path]
    plugins: dict[str, Path]
    """The CNI plugins of the node's runtime."""


def say_on_stderr(line: str) -> None:
    """Tell a person; a log gets the same lines."""
    print(f"node: {line}", file=sys.stderr, flush=True)


def node_programs(binaries: Binaries, say: Say, find: FindGo) -> NodePrograms:
    """The programs, built first if they are not there, which takes minutes. CannotBuild says what that lacks."""
    if os.getuid() != 0:
        raise CannotBuild("nodes are made of namespaces, mounts and cgroups, which takes root")
    if not binaries.kubelet or not binaries.kube_proxy:
        raise CannotBuild(
            "KUBEBUILDER_ASSETS lacks kubelet or kube-proxy: put them there, or unset it to have everything built"
        )
    if lacking := [package for program, package in PACKAGES.items() if not shutil.which(program)]:
        raise CannotBuild(
            f"missing on this machine: {', '.join(lacking)} (Debian: apt-get install {' '.join(lacking)})"
        )
    built = {program.file: executable(program, say, find) for program in ALL}
    plugins = {program.file: built[program.file] for program in (*NEW_PLUGINS, MULTUS)}
    commands = {name: path for name, path in built.items() if name not in plugins}
    return NodePrograms(
        commands=commands | {"kubelet": binaries.kubelet, "kube-proxy": binaries.kube_proxy}, plugins=plugins
    )


def install_packages(say: Say) -> None:
    """Have Debian's packages installed if some are missing and we may: as root, on a machine with apt-get."""
    lacking = [package for program, package in PACKAGES.items() if not shutil.which(program)]
    apt_get = shutil.which("apt-get")
    if not lacking or os.getuid() != 0 or not apt_get:
        return
    say(f"apt-get install {' '.join(lacking)}")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *lacking]):
        # A failure is left to `node_programs`, which says what is missing then.
        subprocess.run([apt_get, *arguments], check=False, env=environment)
