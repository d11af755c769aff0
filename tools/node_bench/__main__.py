"""`make node` (run) and what `make test` builds beforehand (build): real nodes for a person.

python -m node_bench run [NODE...]
"""

import signal
import sys
import tempfile
from pathlib import Path

from control_plane.errors import CannotBuild, DidNotStart
from control_plane.go_toolchain import find_or_install_go
from node_bench.cluster import ClusterSpec, NodeCluster, Parts, node_cluster
from node_bench.programs import install_packages, say_on_stderr


def build() -> Parts:
    """See to it that programs and images are there."""
    install_packages(say_on_stderr)
    return Parts.built(say_on_stderr, find_or_install_go)


def run(*names: str) -> None:
    """Run nodes with podtide on them until Ctrl-C."""
    parts = build()
    spec = ClusterSpec(nodes=names or ("node-a",))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    say_on_stderr("starting nodes, and podtide on them")
    try:
        with (
            tempfile.TemporaryDirectory(prefix="podtide-operator-") as directory,
            node_cluster(parts, Path(directory), spec) as cluster,
        ):
            print(_welcome(cluster, spec), flush=True)
            signal.pause()
    except KeyboardInterrupt:
        say_on_stderr("stopped")


def _welcome(cluster: NodeCluster, spec: ClusterSpec) -> str:
    control_plane = cluster.bench.control_plane
    kubectl, _ = control_plane.kubectl_command
    return (
        f"{' and '.join(spec.nodes)}, with podtide and the subnet {spec.subnets['pods'][0]}. Try, in another terminal:\n\n"
        f"    export KUBECONFIG={control_plane.kubeconfig}\n"
        f"    {kubectl} get nodes,pods,nnc -A -o wide\n"
        f"    {kubectl} create deployment web --image=localhost/workload:1 --replicas=5 -- sleep 1000\n\n"
        f"Logs of kubelet, containerd and kube-proxy are in {cluster.bench.logs}. Ctrl-C stops it and leaves nothing behind."
    )


if __name__ == "__main__":
    try:
        if sys.argv[1] == "build":
            build()
        else:
            run(*sys.argv[2:])
    except (CannotBuild, DidNotStart) as error:
        say_on_stderr(str(error))
        sys.exit(1)
