"""A cluster that runs Whereabouts moves to podtide while its pods run: docs/migrating.md, step by step."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from ipaddress import IPv4Address
from pathlib import Path

from cni_programs import WHEREABOUTS_SLICES
from control_plane.process import Process
from e2e import pods
from e2e.address_book import AddressBook, Held
from e2e.networks import define, defined
from e2e.pod_starter import PodStarter
from e2e.pools import allocations, names, slices
from e2e.processes import run_podtide
from e2e.programs import Site, allocator, controller, running
from e2e.waiting import wait_until
from e2e.whereabouts import SideBySide, whereabouts_kinds
from go_program import GoProgram

NODES = ("node-a", "node-b")
PODS = ("one", "two")
"""On each node, before the move and after it."""


@contextmanager
def whereabouts_slices(site: Site, program: Path) -> Iterator[None]:
    """Whereabouts' node slice controller at work."""
    command = (
        *("env", "WHEREABOUTS_NAMESPACE=kube-system", program),
        *("-kubeconfig", site.control_plane.kubeconfig),
    )
    with running(Process(site.nursery, command, lambda: True, log=site.logs / "whereabouts-slices.log")):
        yield


def start_pods(site: Site, starters: dict[str, PodStarter], when: str) -> dict[str, list[Held]]:
    """By node, what its pods have."""
    for node in starters:
        for pod in PODS:
            pods.create(site.control_plane, f"{when}-{node}-{pod}", node)
    return {node: [each.start(f"{when}-{node}-{pod}") for pod in PODS] for node, each in starters.items()}


def says_that_all_is_well(site: Site, *command: str) -> bool:
    done = run_podtide(*command, "--kubeconfig", site.control_plane.kubeconfig)
    assert done.returncode == 0, done.stdout + done.stderr
    return True


def test_podtide_takes_over_a_sliced_network_with_all_that_runs_on_it(
    side_by_side: SideBySide, whereabouts_source: Path, cni_program: Callable[[GoProgram], Path]
) -> None:
    site, book = side_by_side.site, AddressBook()
    control_plane = site.control_plane
    network = side_by_side.network("moving", range="10.50.0.0/24", node_slice_size="/26")
    for node in NODES:
        control_plane.admin.request("POST", "/api/v1/nodes", {"metadata": {"name": node}})

    with whereabouts_kinds(control_plane, whereabouts_source):
        define(control_plane, side_by_side.for_whereabouts(network))
        with whereabouts_slices(site, cni_program(WHEREABOUTS_SLICES)):
            wait_until(lambda: slices(control_plane, "moving").keys() == set(NODES), "slices by Whereabouts")
        before = start_pods(
            site, {node: side_by_side.theirs(node, network, book) for node in NODES}, "before"
        )
        cut, pools = slices(control_plane, "moving"), names(control_plane, "ippools")

    with ExitStack() as programs:
        url = programs.enter_context(allocator(site, "10.1.0.0/24"))
        programs.enter_context(controller(site, url))
        for node in NODES:
            programs.enter_context(running(site.agent(node, "--no-node-pool")))
        assert says_that_all_is_well(site, "migrate", "whereabouts", "--dry-run")
        assert says_that_all_is_well(site, "migrate", "whereabouts", "--apply")
        assert defined(control_plane, "moving")["ipam"]["type"] == "podtide"

        ours = {node: side_by_side.ours(node, network, book) for node in NODES}
        after = start_pods(site, ours, "after")
        assert not book.given_twice
        assert slices(control_plane, "moving") == cut, "no slice has moved"
        assert names(control_plane, "ippools") == pools, "what Whereabouts made is used as it is"
        assert all(IPv4Address(held.address) in cut[node] for node in NODES for held in after[node])
        assert says_that_all_is_well(site, "check")

        for node in NODES:
            for held in before[node]:  # by podtide: its plugin is installed under Whereabouts' name, too
                ours[node].stop(held)
            pool = f"moving-{node}-{str(cut[node]).replace('/', '-')}"
            left = {entry["podref"] for entry in allocations(control_plane, pool).values()}
            assert left == {f"default/{held.sandbox.pod}" for held in after[node]}
