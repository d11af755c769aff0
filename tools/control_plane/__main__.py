"""`make kube` (run) and `make control-plane` (build): a control plane for a person."""

import signal
import sys

from control_plane.binaries import binaries, say_on_stderr
from control_plane.cluster import ControlPlane
from control_plane.errors import CannotBuild, DidNotStart
from control_plane.go_toolchain import find_or_install_go


def build() -> None:
    """See to it that the programs are there."""
    binaries(find=find_or_install_go)


def run() -> None:
    """Run a control plane until Ctrl-C."""
    found = binaries(find=find_or_install_go)
    say_on_stderr("starting")
    try:
        with ControlPlane(found) as control_plane:
            for start in (control_plane.start_controllers, control_plane.start_scheduler):
                try:
                    start()
                except CannotBuild as lack:
                    say_on_stderr(f"going on without: {lack}")
            print(
                f"Kubernetes at {control_plane.url}, with podtide's CRDs. Try, in another terminal:\n\n"
                f"    export KUBECONFIG={control_plane.kubeconfig}\n"
                f"    {found.kubectl} get nnc,clustersubnets,nodeslicepools -A\n\n"
                "Ctrl-C stops it and leaves nothing behind.",
                flush=True,
            )
            signal.pause()
    except KeyboardInterrupt:
        say_on_stderr("stopped")


if __name__ == "__main__":
    try:
        {"build": build, "run": run}[sys.argv[1]]()
    except (CannotBuild, DidNotStart) as error:
        say_on_stderr(str(error))
        sys.exit(1)
