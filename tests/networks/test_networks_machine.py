"""Secondary networks through everything: nodes come and go, definitions change, answers are lost, programs are killed.

Whatever happens, at every instant no address of a network is two pods', and what a pod has is written down. And when it
has become quiet, the books agree with each other and with what pods have, nothing is held for nobody, every node has the
slices it should have, and nothing is written any more.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from examples import examples
from networks.fleet import Fleet, RunningPod, held
from podtide.cluster.port import Conflict, Unavailable
from podtide.core.audit.networks import audit_settled_networks
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.runtime.virtual_time import VirtualTimeLoop

DEFINITIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "blue": (
        {"network_name": "blue", "range": "10.1.0.0/26", "node_slice_size": "/28"},
        {"network_name": "blue", "range": "10.1.0.0/25", "node_slice_size": "28"},
        {
            "network_name": "blue",
            "range": "10.1.0.0/26",
            "node_slice_size": "/28",
            "exclude": ["10.1.0.0/30"],
        },
        {"network_name": "blue", "range": "10.1.0.0/26", "node_slice_size": "/27"},
        {"network_name": "blue", "range": "10.1.0.0/26"},
    ),
    "blue-too": ({"network_name": "blue", "range": "10.1.0.0/26", "node_slice_size": "/28"},),
    "plain": (
        {"range": "10.2.0.0/27"},
        {"range": "10.2.0.0/26", "range_start": "10.2.0.2", "gateway": "10.2.0.3"},
    ),
    "plain-too": ({"range": "10.2.0.0/28"},),
    "both-families": (
        {
            "network_name": "two",
            "enable_overlapping_ranges": False,
            "ipRanges": [
                {"range": "10.3.0.0/27", "node_slice_size": "/29"},
                {"range": "fd00:3::/120", "node_slice_size": "/122"},
            ],
        },
    ),
}
RECUT = {("blue", 3), ("blue", 4)}
SETTLING_SECONDS = 1800.0
"""Longer than a quarantine, and than two looks of repair that are a grace period apart."""
QUIET_SECONDS = 600.0

nodes = st.sampled_from(["n1", "n2", "n3"])
pods = st.sampled_from(["web-0", "web-1", "web-2", "web-3", "web-4"])
networks = st.sampled_from(sorted(DEFINITIONS))
places = st.integers(0, 4)
"""Which of those that there are."""
calls = st.sampled_from(["create", "replace", "delete", "get", "list"])
accidents = st.sampled_from([Unavailable("cut off"), Conflict("somebody was quicker"), 0.2, 4.0, 15.0])
losses = st.sampled_from([Unavailable("the answer was lost"), 0.2, 4.0, 15.0])

there_is_a_machine = precondition(lambda self: self.fleet.machines)
there_is_a_pod = precondition(lambda self: self.fleet.pods)
there_is_a_definition = precondition(lambda self: self.fleet.defined)


class NetworksMachine(RuleBasedStateMachine):
    """The rules are people, schedulers, runtimes and mishaps."""

    @initialize(first=st.sets(nodes, min_size=1), defined=st.sets(networks, min_size=1))
    def open(self, first: set[str], defined: set[str]) -> None:
        self.runner = asyncio.Runner(loop_factory=VirtualTimeLoop)
        self.runner.run(self._open(sorted(first), sorted(defined)))

    async def _open(self, first: list[str], defined: list[str]) -> None:
        self.fleet = Fleet()
        self.is_recut = False
        """Whether a network was ever to be cut so that not every node has a part, or that live slices are in the way."""
        self.fleet.start_controller()
        for name in first:
            await self.fleet.join(name)
        for name in defined:
            await self.fleet.define(name, DEFINITIONS[name][0])
        await asyncio.sleep(3)

    def pick(self, there: Iterable[str], place: int) -> str:
        return (ordered := sorted(there))[place % len(ordered)]

    # Nodes

    @rule(node=nodes, lives_on=st.booleans(), pods_stay=st.booleans())
    def a_node_joins_or_leaves(self, node: str, lives_on: bool, pods_stay: bool) -> None:
        machine = self.fleet.machines.get(node)
        if machine is None:
            self.runner.run(self.fleet.join(node))
        elif machine.is_node:
            self.runner.run(self.fleet.leave(node, lives_on=lives_on, pods_stay=pods_stay))

    @there_is_a_machine
    @rule(place=places)
    def a_node_registers_again(self, place: int) -> None:
        node = self.pick(self.fleet.machines, place)
        if self.fleet.machines[node].is_node:
            self.runner.run(self.fleet.register_again(node))

    @there_is_a_machine
    @rule(place=places)
    def a_machine_reboots(self, place: int) -> None:
        self.runner.run(self.fleet.reboot(self.pick(self.fleet.machines, place)))

    # Networks

    @rule(network=networks, place=places)
    def a_network_is_defined_or_changed(self, network: str, place: int) -> None:
        variants = DEFINITIONS[network]
        self.is_recut |= (network, place) in RECUT
        self.runner.run(self.fleet.define(network, variants[place % len(variants)]))

    @there_is_a_definition
    @rule(place=places)
    def a_definition_is_deleted(self, place: int) -> None:
        self.runner.run(self.fleet.undefine(self.pick(self.fleet.defined, place)))

    # Pods

    @there_is_a_machine
    @rule(
        wanted=st.dictionaries(
            pods, st.tuples(places, st.lists(networks, min_size=1, unique=True)), min_size=1
        )
    )
    def pods_come(self, wanted: dict[str, tuple[int, list[str]]]) -> None:
        for pod, (place, asked) in wanted.items():
            if pod not in self.fleet.pods:
                node = self.pick(self.fleet.machines, place)
                self.runner.run(self.fleet.schedule(pod, node, asked))

    @there_is_a_pod
    @rule(place=places, patience=st.sampled_from([60.0, 0.1]))
    def adds_are_repeated(self, place: int, patience: float) -> None:
        self.runner.run(self.fleet.add_again(self.pick(self.fleet.pods, place), patience))

    @there_is_a_pod
    @rule(place=places, is_prompt=st.booleans())
    def a_sandbox_dies(self, place: int, is_prompt: bool) -> None:
        pod = self.pick(self.fleet.pods, place)
        self.fleet.end_sandbox(pod)
        if is_prompt:
            self._pay(self.fleet.pods[pod].node)

    @there_is_a_pod
    @rule(place=places, is_prompt=st.booleans())
    def a_pod_goes(self, place: int, is_prompt: bool) -> None:
        pod = self.pick(self.fleet.pods, place)
        node = self.fleet.pods[pod].node
        self.runner.run(self.fleet.remove_pod(pod))
        if is_prompt:
            self._pay(node)

    @there_is_a_pod
    @rule(place=places, comes_back=nodes)
    def a_pod_is_torn_away_and_comes_back(self, place: int, comes_back: str) -> None:
        pod = self.pick(self.fleet.pods, place)
        asked = self.fleet.pods[pod].networks
        self.runner.run(self.fleet.tear_away(pod))
        if comes_back in self.fleet.machines:
            self.runner.run(self.fleet.schedule(pod, comes_back, asked))

    def _pay(self, node: str) -> None:
        if node in self.fleet.machines:
            self.runner.run(self.fleet.pay(node))

    @there_is_a_machine
    @rule(place=places)
    def a_runtime_makes_up_for_dels(self, place: int) -> None:
        self._pay(self.pick(self.fleet.machines, place))

    @there_is_a_machine
    @rule(place=places, network=networks)
    def a_runtime_collects_garbage(self, place: int, network: str) -> None:
        self.runner.run(self.fleet.collect_garbage(self.pick(self.fleet.machines, place), network))

    # Mishaps

    @there_is_a_machine
    @rule(place=places)
    def an_agent_is_killed(self, place: int) -> None:
        self.runner.run(self.fleet.machines[self.pick(self.fleet.machines, place)].restart())

    @rule()
    def the_controller_is_killed(self) -> None:
        self.runner.run(self.fleet.restart_controller())

    @there_is_a_machine
    @rule(
        place=places,
        call=calls,
        failing=st.lists(accidents, max_size=3),
        losing=st.lists(losses, max_size=3),
    )
    def an_agents_line_becomes_bad(
        self, place: int, call: str, failing: list[Any], losing: list[Any]
    ) -> None:
        luck = self.fleet.machines[self.pick(self.fleet.machines, place)].luck
        luck.steps[call] += failing
        luck.lost_answers[call] += losing

    @rule(call=calls, failing=st.lists(accidents, max_size=3), losing=st.lists(losses, max_size=3))
    def the_controllers_line_becomes_bad(self, call: str, failing: list[Any], losing: list[Any]) -> None:
        self.fleet.controller_luck.steps[call] += failing
        self.fleet.controller_luck.lost_answers[call] += losing

    @rule(seconds=st.sampled_from([0.3, 3.0, 40.0, 150.0, 400.0]))
    def time_passes(self, seconds: float) -> None:
        self.runner.run(asyncio.sleep(seconds))

    # What is so

    @invariant()
    def nothing_is_wrong(self) -> None:
        assert self.runner.run(self._look()) == []

    async def _look(self) -> list[str]:
        """Look at once, while much is under way, and again when all that needs no waiting is done."""
        found = await self.fleet.wrong()
        await asyncio.sleep(0.6)
        return found + await self.fleet.wrong()

    def teardown(self) -> None:
        try:
            self.runner.run(self._settle())
        finally:
            self.runner.run(self.fleet.close())
            self.runner.close()

    async def _settle(self) -> None:
        """Nothing fails any more; runtimes make up for what they owe, and kubelets give pods without a sandbox up."""
        fleet = self.fleet
        for luck in (fleet.controller_luck, *(machine.luck for machine in fleet.machines.values())):
            luck.steps.clear()
            luck.lost_answers.clear()
        await asyncio.sleep(SETTLING_SECONDS)
        for pod in [each.name for each in fleet.pods.values() if not each.is_ready]:
            assert self._cannot_be_served(fleet.pods[pod]), pod
            await fleet.remove_pod(pod)
        for node in sorted(fleet.machines):
            await fleet.pay(node)
        assert not any(machine.owed for machine in fleet.machines.values())
        await asyncio.sleep(SETTLING_SECONDS)
        assert await fleet.wrong() == []
        picture = await fleet.picture()
        assert [each.words for each in audit_settled_networks(picture)] == []
        assert held(picture) - fleet.held_by_the_living() == set()
        await self._look_at_slices()
        before = await fleet.version()
        await asyncio.sleep(QUIET_SECONDS)
        assert await fleet.version() == before

    def _cannot_be_served(self, pod: RunningPod) -> bool:
        """Whether a pod waits for good reason: its machine is gone, or a network of it is not there, or was cut otherwise."""
        return (
            pod.node not in self.fleet.machines
            or not self.fleet.defined.keys() >= set(pod.networks)
            or (self.is_recut and any(each.startswith("blue") for each in pod.networks))
        )

    async def _look_at_slices(self) -> None:
        listed = {
            (pool.metadata.name, entry.node_name)
            for pool in (await self.fleet.cluster.list(NodeSlicePool)).items
            for entry in (pool.status.allocations if pool.status else ())
            if entry.node_name
        }
        if not self.is_recut:
            assert self.fleet.slices_wanted() <= listed


TestNetworksMachine = pytest.mark.slow(NetworksMachine.TestCase)
TestNetworksMachine.settings = examples(30, stateful_step_count=30)
