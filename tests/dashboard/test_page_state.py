"""The page's state: it follows objects one by one, and says what is so and nothing else."""

from fractions import Fraction

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from msgspec.structs import replace

from dashboard.pages import ABOUT, Browser, truth
from examples import examples
from podtide.core.subnet.exhaustion import Thresholds
from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.statement import Statement, request_at
from podtide.dashboard.address_map import CellState
from podtide.dashboard.page_state import PageState
from podtide.dashboard.records import ThresholdsRecord
from podtide.resources.base import ObjectMeta
from podtide.resources.cluster_subnet import (
    ClusterSubnet,
    ClusterSubnetStatus,
    ScalerInForce,
    SubnetCidr,
    ThresholdsInForce,
)
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.metadata_keys import STATEMENT_ANNOTATION, WAITING_PODS_ANNOTATION
from podtide.resources.node import Node
from podtide.resources.node_network_config import (
    IPAssignment,
    NetworkContainer,
    NodeNetworkConfig,
    NodeNetworkConfigSpec,
    NodeNetworkConfigStatus,
)
from podtide.resources.statement_annotation import render
from podtide.resources.timestamps import to_micro_time

NOW = 1_750_000_000.0


class StoppedClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = NOW

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now


def state_of(clock: StoppedClock | None = None) -> PageState:
    return PageState(ABOUT, clock or StoppedClock(), thresholds=Thresholds())


def node(name: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, uid=name))


def config(
    name: str,
    held: int,
    *,
    demand: int = 0,
    batch: int = 16,
    first: int = 10,
    named: int = 0,
    waiting: int = 0,
) -> NodeNetworkConfig:
    """A node's NodeNetworkConfig with a statement; its addresses are 10.1.0.first and those after it."""
    request = request_at(demand, Scaler(batch), 1)
    statement = Statement(
        demand=demand, batch=batch, buffer=Fraction(1, 2), max_ips=250, primaries=1, request=request
    )
    entries = [
        IPAssignment(name=f"g{number}", ip=f"10.1.0.{number}")
        for number in range(first + 1, first + 1 + held)
    ]
    container = NetworkContainer(
        id=name,
        subnet_name="pods",
        vnet_id="blue",
        primary_ip=f"10.1.0.{first}",
        subnet_address_space="10.1.0.0/24",
        ip_assignments=entries,
    )
    annotations = {STATEMENT_ANNOTATION: render(statement), WAITING_PODS_ANNOTATION: str(waiting)}
    return NodeNetworkConfig(
        metadata=ObjectMeta(name=name, namespace="kube-system", annotations=annotations),
        spec=NodeNetworkConfigSpec(
            requested_ip_count=request, ips_not_in_use=[entry.name for entry in entries[:named]]
        ),
        status=NodeNetworkConfigStatus(network_containers=[container]),
    )


def subnet(*, batch: int = 16, reserved: int = 0, exhausted: bool = False) -> ClusterSubnet:
    return ClusterSubnet(
        metadata=ObjectMeta(name="pods", namespace="kube-system"),
        status=ClusterSubnetStatus(
            cidr="10.1.0.0/24",
            cidrs=[SubnetCidr(cidr="10.1.0.0/24", gateway="10.1.0.1")],
            capacity=253,
            reserved=reserved,
            exhausted=exhausted,
            scaler=ScalerInForce(batch=batch, buffer=0.5, top=16),
        ),
    )


def shown_thresholds(state: PageState) -> ThresholdsRecord | None:
    state.publish()
    return state.subnets["pods"].thresholds


def test_thresholds_are_those_that_the_clustersubnet_shows_in_force_else_the_controllers() -> None:
    told = subnet()
    in_force = replace(told.status, thresholds=ThresholdsInForce(lower=0.6, upper=0.75))
    for default, expected in ((None, None), (Thresholds(), ThresholdsRecord(lower=0.8, upper=0.9))):
        state = PageState(ABOUT, StoppedClock(), thresholds=default)
        state.note_subnet(None, told)
        assert shown_thresholds(state) == expected
        state.note_subnet(told, replace(told, status=in_force))
        assert shown_thresholds(state) == ThresholdsRecord(lower=0.6, upper=0.75)


def test_a_nodes_record_has_what_it_stated_holds_and_gives_back() -> None:
    state = state_of()
    state.note_node(None, node("a"))
    state.note_config(None, config("a", 31, demand=20, named=2))
    record = state.nodes["a"]
    assert (record.demand, record.request, record.held, record.primaries) == (20, 31, 31, 1)
    assert (record.releasing, record.free, record.owed, record.waiting) == (2, 9, 2, 0)


def test_pods_that_waited_when_the_node_asked_do_not_wait_once_it_holds_enough() -> None:
    state = state_of()
    state.note_config(None, config("a", 10, demand=20, waiting=20))
    assert state.nodes["a"].waiting == 10
    state.note_config(None, config("a", 31, demand=20, waiting=20))
    assert state.nodes["a"].waiting == 0


def test_a_subnet_sums_up_its_nodes_and_forgets_those_that_leave() -> None:
    state = state_of()
    state.note_subnet(None, subnet())
    a, b = config("a", 15, demand=3), config("b", 31, demand=20, first=100)
    state.note_config(None, a)
    state.note_config(None, b)
    state.publish()
    record = state.subnets["pods"]
    assert (record.nodes, record.pods, record.idle, record.reserved) == (2, 23, 12 + 11, 48)
    state.note_config(b, None)
    state.publish()
    record = state.subnets["pods"]
    assert (record.nodes, record.pods, record.reserved, state.stated_pods) == (1, 3, 16, 3)


def test_a_subnet_of_which_nothing_tells_any_more_is_gone() -> None:
    state = state_of()
    state.note_config(None, config("a", 15))
    state.publish()
    assert state.subnets["pods"].cidrs[0].cidr == "10.1.0.0/24"
    browser = Browser()
    browser.catch_up(state)
    state.note_config(config("a", 15), None)
    state.publish()
    browser.catch_up(state)
    assert browser.shown["subnets"] == {}
    assert (state.maps, browser.snapshots) == ({}, 1)


def test_the_map_tells_states_and_nodes_address_by_address() -> None:
    state = state_of()
    state.note_subnet(None, subnet())
    state.note_config(None, config("a", 3, named=1), is_first=True)
    state.publish()
    cells = [state.maps["pods"].cell((10 << 24) + (1 << 16) + last) for last in (0, 1, 2, 10, 11, 12, 255)]
    assert [cell.state for cell in cells] == [
        CellState.KEPT_BACK,
        CellState.KEPT_BACK,
        CellState.FREE,
        CellState.PRIMARY,
        CellState.RELEASING,
        CellState.HELD,
        CellState.KEPT_BACK,
    ]
    assert [state.owner_name(cell.owner) for cell in cells] == ["", "", "", "a", "a", "a", ""]


def test_an_address_that_changes_hands_stays_with_the_one_who_has_it() -> None:
    state = state_of()
    state.note_config(None, config("a", 3))
    state.note_config(None, config("b", 3))
    state.note_config(config("a", 3), None)
    cell = state.maps["pods"].cell((10 << 24) + (1 << 16) + 11)
    assert state.owner_name(cell.owner) == "b"


def test_a_request_is_a_decision_with_the_arithmetic_of_the_core() -> None:
    state = state_of()
    state.note_config(None, config("a", 15, demand=3))
    state.note_config(config("a", 15, demand=3), config("a", 15, demand=37))
    (decision,) = state.snapshot().decisions
    assert decision.text == "a asks for 47 addresses, 15 before: demand 37, 10 free"
    assert decision.formula == "16·⌈0.5 + 37/16⌉ - 1 = 47"
    assert ("U", "demand: pods that need an address", "37") in decision.terms


def test_exhaustion_and_batch_are_decisions_with_the_inequality() -> None:
    state = state_of()
    state.note_subnet(None, subnet())
    state.note_subnet(subnet(), subnet(batch=4, reserved=240, exhausted=True))
    exhausted, batch = state.snapshot().decisions
    assert exhausted.formula == "R = 240 > T·Q = 0.9·253 = 227.7"
    assert batch.text == "the batch of subnet pods is reduced from 16 to 4"


def test_what_was_there_at_the_start_is_not_a_decision() -> None:
    state = state_of()
    state.note_node(None, node("a"), is_first=True)
    state.note_config(None, config("a", 15), is_first=True)
    state.note_subnet(None, subnet())
    assert state.snapshot().decisions == ()


def test_a_burst_of_decisions_does_not_push_all_others_out() -> None:
    state = state_of()
    for number in range(500):
        state.note_node(None, node(f"n{number}"))
    decisions = state.snapshot().decisions
    assert len(decisions) == 26
    assert decisions[-1].text == "and 475 more at the same time"


def test_an_agent_that_does_not_answer_a_smaller_batch_is_out_of_contact_after_a_minute() -> None:
    clock = StoppedClock()
    state = state_of(clock)
    state.note_subnet(None, subnet())
    for name in ("a", "b"):
        state.note_config(None, config(name, 15, demand=3))
    state.note_subnet(subnet(), subnet(batch=4))
    state.note_config(config("b", 15, demand=3), config("b", 15, demand=3, batch=4))
    state.publish()
    assert state.health.agents.silent_count == 0
    clock.now += 61
    state.renew_health()
    state.publish()
    agents = state.health.agents
    assert (agents.total, agents.silent_count, [each.node for each in agents.silent]) == (2, 1, ["a"])


def test_an_agent_that_never_asked_is_out_of_contact_after_a_minute() -> None:
    clock = StoppedClock()
    state = state_of(clock)
    mute = NodeNetworkConfig(
        metadata=ObjectMeta(name="a", namespace="kube-system"),
        status=NodeNetworkConfigStatus(network_containers=[NetworkContainer(subnet_name="pods")]),
    )
    state.note_config(None, mute)
    clock.now += 61
    state.renew_health()
    state.publish()
    assert [each.message for each in state.health.agents.silent] == [
        "its agent has asked for nothing: see that it runs"
    ]


def test_a_leader_that_renews_is_told_of_seldom_and_one_that_does_not_at_once() -> None:
    clock = StoppedClock()
    state = state_of(clock)

    def lease(renewed: float) -> Lease:
        spec = LeaseSpec(holder_identity="c-1", lease_duration_seconds=15, renew_time=to_micro_time(renewed))
        return Lease(metadata=ObjectMeta(name="podtide-controller", namespace="kube-system"), spec=spec)

    state.note_lease(None, lease(clock.now))
    assert state.publish()
    assert state.health.leader.ok
    for _ in range(4):
        clock.now += 2
        state.note_lease(lease(clock.now - 2), lease(clock.now))
        assert not state.publish()
    clock.now += 40
    state.renew_health()
    assert state.publish()
    assert "was last renewed 40s ago, by c-1" in state.health.leader.message


class BrowsersOfAPage(RuleBasedStateMachine):
    """Whatever happens to objects, and however clients come and go, a client that caught up shows the server's state."""

    def __init__(self) -> None:
        super().__init__()
        self.state = state_of()
        self.configs: dict[str, NodeNetworkConfig] = {}
        self.subnet: ClusterSubnet | None = None
        self.browsers = [Browser(), Browser()]

    @rule(
        name=st.sampled_from("abc"),
        held=st.integers(0, 20),
        demand=st.integers(0, 40),
        named=st.integers(0, 3),
    )
    def write(self, name: str, held: int, demand: int, named: int) -> None:
        new = config(name, held, demand=demand, named=named, first=10 + 70 * "abc".index(name))
        self.state.note_config(self.configs.get(name), new)
        self.configs[name] = new

    @precondition(lambda self: self.configs)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.configs)))
        self.state.note_config(self.configs.pop(name), None)

    @rule(batch=st.sampled_from([1, 4, 16]), exhausted=st.booleans())
    def decide(self, batch: int, exhausted: bool) -> None:
        new = subnet(batch=batch, exhausted=exhausted)
        self.state.note_subnet(self.subnet, new)
        self.subnet = new

    @precondition(lambda self: self.subnet)
    @rule()
    def forget_subnet(self) -> None:
        self.state.note_subnet(self.subnet, None)
        self.subnet = None

    @rule()
    def publish(self) -> None:
        self.state.publish()

    @rule(number=st.integers(0, 1))
    def catch_up(self, number: int) -> None:
        self.state.publish()
        self.browsers[number].catch_up(self.state)
        assert self.browsers[number].shown == truth(self.state)

    @rule(number=st.integers(0, 1))
    def reload(self, number: int) -> None:
        self.browsers[number] = Browser()

    @rule()
    def sums_are_those_of_the_nodes(self) -> None:
        self.state.publish()
        expected = PageState(ABOUT, StoppedClock(), thresholds=Thresholds())
        for each in self.configs.values():
            expected.note_config(None, each)
        if self.subnet is not None:
            expected.note_subnet(None, self.subnet)
        expected.publish()
        assert self.state.subnets == expected.subnets
        assert self.state.nodes == expected.nodes
        assert self.state.stated_pods == expected.stated_pods
        for name, there in expected.maps.items():
            assert (
                self.state.maps[name].render(0, 1, frozenset()).cells == there.render(0, 1, frozenset()).cells
            )


TestBrowsersOfAPage = BrowsersOfAPage.TestCase
TestBrowsersOfAPage.settings = examples(40)
