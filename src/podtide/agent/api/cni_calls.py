"""The CNI verbs, answered from the node's addresses: what the plugin prints is what is said here.

A network without ranges has the node's pool, and is answered at once if it can be. One with ranges of its own is
secondary: whatever is asked of it has to be written to the cluster first, or read from there.

Nothing that goes wrong escapes: it becomes a CNI error in one line, and only what nobody foresaw leaves a traceback,
in the log. The runtime acts on the code alone (`podtide.cni.errors` chooses it), so most of this is about raising the
right kind of error at the right time: whatever can be refused is refused before an address is taken.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache, partial

import msgspec
from msgspec import Struct

from podtide.agent.api.call_log import CallEntry, CallLog, Count, uncounted
from podtide.agent.api.deletion_notes import Notes
from podtide.agent.api.plugin_protocol import Answer, owner_of
from podtide.agent.api.secondary_calls import SecondaryCalls, require_stated
from podtide.agent.networks.configuration_cache import may_have_ranges, read_config
from podtide.agent.networks.secondary_networks import SecondaryNetworks
from podtide.agent.port import Addresses, NoAddress, NotAssigned, NotReady, PodAddress
from podtide.cni.addresses import interface
from podtide.cni.arguments import Call, parse_environment
from podtide.cni.attachments import previous_addresses, valid_attachments
from podtide.cni.documents import decode
from podtide.cni.errors import NotAvailable, UnknownContainer, error_answer
from podtide.cni.ipam_config import IpamConfig, with_arguments
from podtide.cni.results import AssignedAddress, render_result
from podtide.cni.versions import LATEST, SUPPORTED, Verb, require_verb, version_answer
from podtide.core.errors import InvalidConfig, PodtideError
from podtide.core.pool.pool import Owner
from podtide.core.ranges import parse_address, parse_network
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger

_NOTHING = b""


class _Later(Struct, frozen=True):
    """A call that has to wait, for an address or for the cluster. Nothing has happened yet but that it may be made."""

    arrived: float
    carry_out: Callable[[], Awaitable[bytes]]


class CniCalls:
    """What the plugin asks, and what it is answered."""

    def __init__(  # noqa: PLR0913 - who answers, what is told of it, and what it runs in
        self,
        addresses: Addresses,
        notes: Notes,
        networks: SecondaryNetworks | None = None,
        *,
        clock: Clock,
        log: Logger,
        count: Count = uncounted,
    ) -> None:
        self._addresses = addresses
        self._notes = notes
        self._secondary = SecondaryCalls(networks, notes, clock=clock) if networks is not None else None
        self._clock = clock
        self._calls = CallLog("cni", clock=clock, log=log, count=count)

    async def answer(self, environment: Mapping[str, str], stdin: bytes, *, arrived: float) -> Answer:
        """The answer to one call of the plugin; `arrived` is when it reached the agent.

        When this is cancelled an ADD that waits takes no address later.
        """
        with self._calls.call(arrived) as entry:
            try:
                output = self._carry_out(environment, stdin, arrived, entry)
                if isinstance(output, _Later):
                    output = await output.carry_out()
                return Answer(0, output)
            except Exception as error:  # noqa: BLE001 - whatever it is, the runtime must be told in its own words
                entry.error = error
                return refusal(error, stdin)

    def answer_now(
        self, environment: Mapping[str, str], stdin: bytes, *, arrived: float, give: Callable[[Answer], None]
    ) -> float | None:
        """Give the answer to a call that needs no wait. Of one that does, say for `answer` when it arrived.

        It is written down after it is given, so that no caller waits for the log.
        """
        with self._calls.call(arrived) as entry:
            try:
                output = self._carry_out(environment, stdin, arrived, entry)
            except Exception as error:  # noqa: BLE001 - whatever it is, the runtime must be told in its own words
                entry.error = error
                give(refusal(error, stdin))
                return None
            if isinstance(output, _Later):
                entry.is_over = False
                return output.arrived
            give(Answer(0, output))
            return None

    def _carry_out(
        self, environment: Mapping[str, str], stdin: bytes, arrived: float, entry: CallEntry
    ) -> bytes | _Later:
        entry.verb = environment.get("CNI_COMMAND", "")
        call = parse_environment(environment)
        match call.verb:
            case Verb.ADD:
                return self._add(call, stdin, arrived, entry)
            case Verb.DEL:
                return self._delete(call, stdin, arrived, entry)
            case Verb.CHECK:
                return self._check(call, stdin, arrived, entry)
            case Verb.STATUS:
                return self._status(stdin, arrived)
            case Verb.GC:
                return self._collect_garbage(stdin, arrived)
            case Verb.VERSION:
                return msgspec.json.encode(version_answer(_stated_version(stdin)))

    def _add(self, call: Call, stdin: bytes, arrived: float, entry: CallEntry) -> bytes | _Later:
        config = _config(Verb.ADD, stdin)
        if call.pod.ips or call.pod.gateways:
            config = with_arguments(config, call.pod)
        owner = entry.owner = owner_of(call, config.name)
        if not config.is_primary:
            secondary = self._require_secondary(config)
            return _Later(arrived, partial(secondary.add, owner, config, arrived, entry))
        if self._notes.carry_out(owner.sandbox, owner.interface):
            # The DEL in the note came first, though it is carried out only now.
            arrived = self._clock.monotonic()
        given = self._addresses.add_now(owner, arrived=arrived)
        if given is None:
            return _Later(arrived, partial(self._add_when_free, owner, config, arrived, entry))
        return _added(given, config, entry)

    async def _add_when_free(
        self, owner: Owner, config: IpamConfig, arrived: float, entry: CallEntry
    ) -> bytes:
        return _added(await self._addresses.add(owner, arrived=arrived), config, entry)

    def _delete(self, call: Call, stdin: bytes, arrived: float, entry: CallEntry) -> bytes | _Later:
        # What else the configuration says is not asked: whatever became of it, the sandbox must be let go.
        require_verb(Verb.DEL, _version(stdin))
        owner = entry.owner = owner_of(call)
        if self._secondary is None:
            return self._let_go(owner, entry)
        if not may_have_ranges(stdin):
            self._let_go(owner, entry)
            if not self._secondary.knows(owner):
                return _NOTHING
        return _Later(arrived, partial(self._secondary.delete, owner, stdin, entry))

    def _let_go(self, owner: Owner, entry: CallEntry) -> bytes:
        entry.addresses = tuple(each.ip for each in self._addresses.delete(owner))
        return _NOTHING

    def _check(self, call: Call, stdin: bytes, arrived: float, entry: CallEntry) -> bytes | _Later:
        config = _config(Verb.CHECK, stdin)
        secondary = None if config.is_primary else self._require_secondary(config)
        owner = entry.owner = owner_of(call, config.name)
        stated = {item.ip for item in previous_addresses(stdin)}
        if secondary is not None:
            return _Later(arrived, partial(secondary.check, owner, config, stated, entry))
        try:
            held = self._addresses.check(owner)
        except NotAssigned as error:
            raise UnknownContainer(str(error)) from error
        entry.addresses = tuple(each.ip for each in held)
        require_stated(tuple(map(parse_address, entry.addresses)), stated, owner)
        return _NOTHING

    def _status(self, stdin: bytes, arrived: float) -> bytes | _Later:
        config = _config(Verb.STATUS, stdin)
        if not config.is_primary:
            return _Later(arrived, self._require_secondary(config).status)
        try:
            self._addresses.require_ready()
        except NotReady as error:
            raise NotAvailable(str(error)) from error
        return _NOTHING

    def _collect_garbage(self, stdin: bytes, arrived: float) -> bytes | _Later:
        config = _config(Verb.GC, stdin)
        alive = frozenset((each.container_id, each.ifname) for each in valid_attachments(stdin))
        if not config.name:
            raise InvalidConfig(
                "GC needs the network's name in its configuration: it frees what is that network's"
            )
        if config.is_primary:
            self._addresses.collect_garbage(config.name, alive)
        elif self._secondary is not None:
            return _Later(arrived, partial(self._secondary.collect_garbage, config, alive))
        return _NOTHING

    def _require_secondary(self, config: IpamConfig) -> SecondaryCalls:
        if self._secondary is None:
            raise InvalidConfig(
                f"network {config.name!r} has a range of its own, and this agent serves the node's pool alone: "
                "take 'range' and 'ipRanges' out of its ipam"
            )
        return self._secondary


def refusal(error: Exception, stdin: bytes) -> Answer:
    """The answer that a call failed with this error, in the version that the configuration states."""
    version = _stated_version(stdin)
    answer = error_answer(error, version if version in SUPPORTED else LATEST)
    one_line = msgspec.structs.replace(answer, msg=" ".join(answer.msg.split()))
    return Answer(1, msgspec.json.encode(one_line))


def _config(verb: Verb, stdin: bytes) -> IpamConfig:
    config = read_config(stdin)
    require_verb(verb, config.cni_version)
    return config


def _added(given: tuple[PodAddress, ...], config: IpamConfig, entry: CallEntry) -> bytes:
    if not given:
        raise NoAddress("the node's pool gave no address: try again, and report this")
    entry.addresses = tuple(each.ip for each in given)
    return _rendered(given, config)


@lru_cache(maxsize=4096)  # simulated, a hundred nodes are in one process
def _rendered(given: tuple[PodAddress, ...], config: IpamConfig) -> bytes:
    """The answer to ADD. A node gives the same addresses again and again."""
    return render_result(config.result(map(assigned, given)), config.cni_version)


@lru_cache(maxsize=256)
def assigned(given: PodAddress) -> AssignedAddress:
    """The address with its network's prefix length and gateway; alone where nothing is known of its network."""
    address = parse_address(given.ip)
    prefix_length = parse_network(given.subnet).prefixlen if given.subnet else address.max_prefixlen
    return AssignedAddress(
        interface(address, prefix_length), parse_address(given.gateway) if given.gateway else None
    )


def _stated_version(stdin: bytes) -> str:
    """The version a configuration states, "" where there is none to be found."""
    try:
        return _version(stdin)
    except PodtideError:
        return ""


@lru_cache(maxsize=8)
def _version(stdin: bytes) -> str:
    """The version in a configuration that may have whatever else in it."""
    document = decode(stdin, "network configuration")
    stated = next((value for key, value in document.items() if key.lower() == "cniversion"), "")
    return stated if isinstance(stated, str) else ""
