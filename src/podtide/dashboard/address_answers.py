"""Maps, addresses and nodes: from the page's state, with pods looked up now."""

from ipaddress import ip_address

from podtide.cluster.port import ClusterError
from podtide.dashboard.address_map import BLOCK_SIZE, CellState, SubnetMap
from podtide.dashboard.answers import (
    AddressDetails,
    AddressOfNode,
    ConditionAnswer,
    MapAnswer,
    NodeDetails,
    PageNode,
    PodOfNode,
    UtilizationAnswer,
    away,
    bad_question,
    not_there,
)
from podtide.dashboard.decisions import request_decision
from podtide.dashboard.holdings import holding_of
from podtide.dashboard.page_state import PageState
from podtide.dashboard.pod_finder import MOST_PODS, BriefPod, PodFinder
from podtide.dashboard.records import DecisionRecord
from podtide.resources.timestamps import to_time
from podtide.runtime.clock import Clock

MOST_BLOCKS = 256
MOST_UTILIZATION_BLOCKS = 4_096
_PREFIX = {4: 24, 6: 120}
_PODS_EVERY_SECONDS = 3.0
_PODS_PER_SECOND = 250
"""What lists of pods may cost on average: of 5,000 one in 20 seconds."""
_FEW_STATES = frozenset({CellState.HELD, CellState.RELEASING})


class AddressAnswers:
    """Answers about addresses."""

    def __init__(self, state: PageState, pods: PodFinder, clock: Clock) -> None:
        self._state = state
        self._pods = pods
        self._clock = clock
        self._on_pods: frozenset[int] | None = None
        """The addresses of pods that maps were last drawn with; None before the first, and in a large cluster."""

    def pods_due_seconds(self) -> float:
        """How often pods are to be looked up while pages are open: the more there are, the less often."""
        return max(_PODS_EVERY_SECONDS, self._state.stated_pods / _PODS_PER_SECOND)

    async def renew_pods(self) -> bool:
        """Look up pods anew, if a map shows them, and note which blocks differ. Returns whether any does."""
        if self._on_pods is None or self._state.stated_pods > MOST_PODS:
            return False
        try:
            now = await self._pods.addresses(None)
        except ClusterError:
            return False  # that the API server does not answer is told under health
        before, self._on_pods = self._on_pods, now
        return self._state.note_pods(before ^ now)

    async def map(self, subnet: str, first: int, count: int, node: str | None) -> MapAnswer:
        """Blocks of a subnet. Which held addresses pods have is known of all nodes, or of the node that is named."""
        there = self._map(subnet)
        _check_blocks(first, count, MOST_BLOCKS)
        is_small = self._state.stated_pods <= MOST_PODS
        on_pods = frozenset[int]()
        try:
            if is_small or node is not None:
                on_pods = await self._pods.addresses(None if is_small else node)
            self._on_pods = on_pods if is_small else None
        except ClusterError:
            is_small = False  # the map is worth showing without pods
        there = self._map(subnet)  # it may be gone since
        rendered = there.render(first, count, on_pods)
        return MapAnswer(
            subnet=subnet,
            blocks=there.block_count,
            size=BLOCK_SIZE,
            first=first,
            nodes=tuple(map(self._state.owner_name, rendered.owners_used)),
            pods="all" if is_small else "asked",
            cells=rendered.cells,
            owners=rendered.owners,
            bases=rendered.bases,
        )

    def utilization(self, subnet: str, first: int, count: int) -> UtilizationAnswer:
        """How many addresses of each block are in use."""
        there = self._map(subnet)
        _check_blocks(first, count, MOST_UTILIZATION_BLOCKS)
        usage = list(there.usage(first, count))
        return UtilizationAnswer(
            subnet=subnet,
            prefix=_PREFIX[there.family],
            blocks=there.block_count,
            first=first,
            used=tuple(used for _, used in usage),
            bases=tuple(base for base, _ in usage),
        )

    async def address(self, text: str) -> AddressDetails:
        """One address, with the pod that has it now."""
        try:
            address = ip_address(text)
        except ValueError:
            raise bad_question(f"{text[:60]!r} is not an address: give one such as 10.1.0.7") from None
        number = int(address)
        name = next(
            (name for name, each in self._state.maps.items() if each.holds(number, address.version)), None
        )
        if name is None:
            raise not_there(f"{address} is in none of the subnets that this cluster uses")
        cell = self._state.maps[name].cell(number)
        node = self._state.owner_name(cell.owner) or None
        state, message = cell.state, _address_message(cell.state, node)
        pod = None
        if node is not None and state in _FEW_STATES:
            try:
                pod = _pod_with(await self._pods.on_node(node), str(address))
            except ClusterError as error:
                message = f"its pod could not be looked up: {error}"
        if pod is not None:
            state, message = CellState.POD, ""
        return AddressDetails(
            address=str(address),
            subnet=name,
            state=state.words,
            node=node,
            pod=pod.key if pod else None,
            pod_uid=pod.uid if pod else None,
            since=pod.created if pod else self._state.changed_at(name, number),
            message=message,
        )

    async def node(self, name: str) -> PageNode:
        """A node, its addresses and its pods."""
        record = self._state.nodes.get(name)
        if record is None:
            raise not_there(f"there is no node {name!r} in this cluster (any more)")
        config = self._state.config(name)
        try:
            pods = await self._pods.on_node(name)
        except ClusterError as error:
            raise away(f"the pods of node {name} could not be looked up: {error}") from error
        by_address = {address: pod for pod in pods for address in pod.addresses}
        addresses = []
        for (subnet, number), state in holding_of(config).addresses.items():
            there = self._state.maps.get(subnet)
            text = there.address_text(number) if there else str(ip_address(number))
            pod = by_address.get(text) if state in _FEW_STATES else None
            addresses.append(
                AddressOfNode(
                    address=text,
                    subnet=subnet,
                    state=(CellState.POD if pod else state).words,
                    pod=pod.key if pod else None,
                    since=pod.created if pod else self._state.changed_at(subnet, number),
                )
            )
        decision = None
        if config is not None and config.spec.requested_ip_count:
            draft = request_decision(config)
            decision = DecisionRecord(
                id=0,
                time=to_time(self._clock.wall()),
                kind=draft.kind,
                subject=draft.subject,
                text=draft.text,
                terms=draft.terms,
                formula=draft.formula,
            )
        return PageNode(
            record=record,
            details=NodeDetails(
                addresses=tuple(addresses),
                pods=tuple(
                    PodOfNode(
                        name=pod.key,
                        phase=pod.phase,
                        address=pod.addresses[0] if pod.addresses else None,
                        message="waits for an address" if pod.is_waiting else "",
                    )
                    for pod in pods
                ),
                conditions=tuple(
                    ConditionAnswer(
                        type=each.type,
                        status=each.status,
                        reason=each.reason,
                        message=each.message,
                        since=each.last_transition_time,
                    )
                    for each in (config.status.conditions if config else ())
                ),
                decision=decision,
            ),
        )

    def _map(self, subnet: str) -> SubnetMap:
        there = self._state.maps.get(subnet)
        if there is None or subnet not in self._state.subnets:
            raise no_such_subnet(subnet)
        return there


def no_such_subnet(name: str) -> Exception:
    """The refusal of a subnet that is not there."""
    return not_there(f"there is no subnet {name[:80]!r} in this cluster (any more)")


def _check_blocks(first: int, count: int, most: int) -> None:
    if first < 0 or not 1 <= count <= most:
        raise bad_question(f"from must be 0 or more and count 1 to {most}: got {first} and {count}")


def _pod_with(pods: tuple[BriefPod, ...], address: str) -> BriefPod | None:
    return next((pod for pod in pods if address in pod.addresses), None)


def _address_message(state: CellState, node: str | None) -> str:
    if state is CellState.FREE:
        return "no node of this cluster has it"
    if state is CellState.QUARANTINED:
        return f"left by node {node}, which is gone: not given to others before its quarantine is over"
    if state is CellState.RELEASING:
        return f"node {node} gives it back"
    if state is CellState.KEPT_BACK:
        return "never given to nodes: a range's first or last address, a gateway, or kept back by the subnet's definition"
    if state is CellState.DRAINING:
        return "its range leaves the subnet: nothing is given of it any more"
    return ""
