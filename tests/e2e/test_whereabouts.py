"""Whereabouts itself and podtide give addresses of the same networks at the same time, from the same books."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from e2e.address_book import AddressBook, Held
from e2e.cni import Document
from e2e.networks import define
from e2e.pod_starter import INTERFACE, PodStarter
from e2e.pools import allocations, reservations, slices
from e2e.programs import Site, allocator, controller, running
from e2e.waiting import wait_until
from e2e.whereabouts import SideBySide, whereabouts_kinds

OURS = ("node-a", "node-b")
"""Nodes with an agent of podtide's."""
THEIRS = "node-w"
"""A node where pods go to Whereabouts."""
THEIR_PODS = 6
OUR_PODS = 3
"""On each of our nodes; they come and go for as long as theirs are being started."""
BREATH_SECONDS = 0.3
"""Between two of ours. Whereabouts reads, decides and writes for so long that without it ours would always come between."""


class Crowd:
    """Pods of one network on all nodes."""

    def __init__(self, side_by_side: SideBySide, network: Document) -> None:
        self._book = AddressBook()
        self._ours = [side_by_side.ours(node, network, self._book) for node in OURS]
        self._theirs = side_by_side.theirs(THEIRS, network, self._book)
        self.our_pods: list[tuple[PodStarter, Held]] = []
        self.their_pods: list[tuple[PodStarter, Held]] = []
        self.given: list[tuple[PodStarter, Held]] = []
        """All that any pod ever had."""

    @property
    def pods(self) -> list[tuple[PodStarter, Held]]:
        """All that run, with who started each."""
        return self.our_pods + self.their_pods

    def start(self) -> None:
        """Start all at once; ours come and go until theirs are all there."""
        with ThreadPoolExecutor(THEIR_PODS + OUR_PODS * len(self._ours)) as threads:
            theirs = [threads.submit(self._theirs.start, f"theirs-{number}") for number in range(THEIR_PODS)]
            ours = [
                (starter, threads.submit(_come_and_go, starter, f"ours-{node}-{number}", theirs))
                for node, starter in enumerate(self._ours)
                for number in range(OUR_PODS)
            ]
        self.their_pods = [(self._theirs, pod.result()) for pod in theirs]
        self.our_pods = [(starter, pods.result()[-1]) for starter, pods in ours]
        self.given = [
            *self.their_pods,
            *((starter, held) for starter, pods in ours for held in pods.result()),
        ]
        assert not self._book.given_twice

    def stop_half(self) -> None:
        """End every second one of ours and of theirs, all at once."""
        going = self.our_pods[::2] + self.their_pods[::2]
        self.our_pods, self.their_pods = self.our_pods[1::2], self.their_pods[1::2]
        with ThreadPoolExecutor(len(going)) as threads:
            for done in [threads.submit(starter.stop, held) for starter, held in going]:
                done.result()

    def stop(self) -> None:
        """End all, one after the other."""
        for starter, held in self.pods:
            starter.stop(held)
        self.our_pods, self.their_pods = [], []


def _come_and_go(starter: PodStarter, pod: str, meanwhile: Sequence[Future[Held]]) -> list[Held]:
    """Start a pod and end it, again and again until all the others are done; answers what each had. The last one stays."""
    given: list[Held] = []
    while True:
        given.append(starter.start(f"{pod}-{len(given)}"))
        if all(other.done() for other in meanwhile):
            return given
        starter.stop(given[-1])
        wait(meanwhile, timeout=BREATH_SECONDS)


@pytest.fixture(scope="module")
def nodes(side_by_side: SideBySide) -> Iterator[SideBySide]:
    """Three nodes, two of them with an agent for secondary networks alone."""
    site = side_by_side.site
    with ExitStack() as agents:
        for name in (*OURS, THEIRS):
            site.control_plane.admin.request("POST", "/api/v1/nodes", {"metadata": {"name": name}})
        for name in OURS:
            agents.enter_context(running(site.agent(name, "--no-node-pool")))
        yield side_by_side


def entries(
    pods: Sequence[tuple[PodStarter, Held]], range_: IPv4Network, **podtides_own: Callable[[Held], str]
) -> dict[str, dict[str, str]]:
    """What a pool of this range says of these pods; `podtides_own` are fields that Whereabouts does not have."""
    return {
        str(int(IPv4Address(held.address)) - int(range_.network_address)): {
            "id": held.sandbox.id,
            "podref": f"default/{held.sandbox.pod}",
            "ifname": INTERFACE,
            **{name: told(held) for name, told in podtides_own.items() if starter.is_podtides},
        }
        for starter, held in pods
    }


def uid_of(held: Held) -> str:
    return held.sandbox.uid


def assert_both_books_are_right(
    site: Site, name: str, crowd: Crowd, *, guarded: bool, with_uids: bool = True
) -> None:
    """The classic pool has every pod that runs and no other, and so have the reservations."""
    found = allocations(site.control_plane, f"{name}-10.30.0.0-26")
    podtides_own = {"poduid": uid_of} if with_uids else {}
    assert found == entries(crowd.pods, IPv4Network("10.30.0.0/26"), **podtides_own)
    reserved = {
        key: podref for key, podref in reservations(site.control_plane).items() if key.startswith(f"{name}-")
    }
    everybody = {f"{name}-{held.address}": f"default/{held.sandbox.pod}" for _, held in crowd.pods}
    assert reserved == (everybody if guarded else {})


@pytest.mark.parametrize("guarded", [True, False])
def test_from_one_classic_pool_no_address_is_given_twice_and_each_side_frees_its_own(
    site: Site, nodes: SideBySide, guarded: bool
) -> None:
    name = "guarded" if guarded else "unguarded"
    crowd = Crowd(nodes, nodes.network(name, range="10.30.0.0/26", enable_overlapping_ranges=guarded))
    crowd.start()
    assert_both_books_are_right(site, name, crowd, guarded=guarded)
    crowd.stop_half()
    assert_both_books_are_right(site, name, crowd, guarded=guarded)
    crowd.stop()
    assert_both_books_are_right(site, name, crowd, guarded=guarded)


def test_where_whereabouts_has_defined_its_kinds_podtide_does_without_its_own_fields(
    site: Site, nodes: SideBySide, whereabouts_source: Path
) -> None:
    crowd = Crowd(nodes, nodes.network("theirs", range="10.30.0.0/26"))
    with whereabouts_kinds(site.control_plane, whereabouts_source):
        crowd.start()
        assert_both_books_are_right(site, "theirs", crowd, guarded=True, with_uids=False)
        crowd.stop()
        assert_both_books_are_right(site, "theirs", crowd, guarded=True, with_uids=False)


def test_from_two_slices_of_one_network_each_node_gives_its_own(site: Site, nodes: SideBySide) -> None:
    network = nodes.network("sliced", range="10.40.0.0/16", node_slice_size="/26")
    define(site.control_plane, network)
    crowd = Crowd(nodes, network)
    with allocator(site, "10.1.0.0/24") as url, controller(site, url, "--naming", "whereabouts"):
        everybody = {*OURS, THEIRS}
        wait_until(lambda: slices(site.control_plane, "sliced").keys() == everybody, "a slice for every node")
        cut = slices(site.control_plane, "sliced")
        crowd.start()
        assert {starter.node for starter, _ in crowd.given} == everybody
        assert all(IPv4Address(held.address) in cut[starter.node] for starter, held in crowd.given)
        for stop_some in (crowd.stop_half, crowd.stop):
            for node in everybody:
                there = [(starter, held) for starter, held in crowd.pods if starter.node == node]
                pool = f"sliced-{node}-{str(cut[node]).replace('/', '-')}"
                told = entries(there, cut[node], poduid=uid_of, configuration=lambda _: "sliced")
                assert allocations(site.control_plane, pool) == told
            stop_some()
