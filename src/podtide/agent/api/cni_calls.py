"""The CNI verbs: from the environment and standard input of the plugin to what it prints.

A network without ranges uses the node's pool, and is answered at once if it can be. One with ranges of its own is
secondary: its calls have to be written to the cluster first, or read from there.

Every exception becomes a CNI error of one line; only an unexpected one leaves a traceback, in the log. The runtime acts
on the code alone (`podtide.cni.errors` chooses it), so most of this is about raising the right kind of error at the right
time: what can be refused is refused before an address is assigned.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache, partial

import msgspec
from msgspec import Struct

from podtide.agent.api.call_log import CallEntry, CallLog, Count, LoggedCall, uncounted
from podtide.agent.api.deletion_notes import DeletionNotes
from podtide.agent.api.plugin_protocol import Answer, decode_call, owner_of
from podtide.agent.api.secondary_calls import SecondaryCalls, require_stated
from podtide.agent.networks.configuration_cache import may_have_ranges, read_config
from podtide.agent.networks.secondary_networks import SecondaryNetworks
from podtide.agent.port import Addresses, NoAddress, NotAssigned, NotReady, PendingAdd, PodAddress
from podtide.cni.addresses import interface
from podtide.cni.arguments import CniCall, parse_environment
from podtide.cni.attachments import previous_addresses, valid_attachments
from podtide.cni.documents import decode
from podtide.cni.errors import NotAvailable, UnknownContainer, error_answer
from podtide.cni.ipam_config import IpamConfig, with_arguments
from podtide.cni.results import AssignedAddress, render_result
from podtide.cni.versions import LATEST, SUPPORTED, Verb, require_verb, version_answer
from podtide.core.errors import InvalidConfig, InvalidInput, PodtideError
from podtide.core.pool.pool import Owner
from podtide.core.ranges import parse_address, parse_network
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger

_NOTHING = b""


def _nothing_to_leave() -> None:
    """For calls that have nothing before they wait."""


class _Wait(Struct, frozen=True):
    """What is left to do of a call that cannot be answered at once."""

    finish: Callable[[], Awaitable[bytes]]
    leave: Callable[[], None] = _nothing_to_leave
    """Gives up what the call has already, a place in a queue, if `finish` is never awaited."""


class PendingCall:
    """A call that waits, for an address or for the cluster: decoded and started, so that only its end is missing."""

    def __init__(self, call: LoggedCall, stdin: bytes, wait: _Wait) -> None:
        self._call = call
        self._stdin = stdin
        self._wait = wait

    async def answer(self) -> Answer:
        """Wait for the answer. When cancelled, an ADD leaves the queue and takes no address later."""
        with self._call as entry:
            try:
                return Answer(0, await self._wait.finish())
            except Exception as error:  # noqa: BLE001 - whatever it is, the runtime gets a CNI error
                entry.error = error
                return refusal(error, self._stdin)

    def fail(self, error: Exception) -> Answer:
        """End the call with this error instead of waiting."""
        self._wait.leave()
        with self._call as entry:
            entry.error = error
        return self.refusal(error)

    def refusal(self, error: Exception) -> Answer:
        """The answer that the call failed with this error. The call itself goes on."""
        return refusal(error, self._stdin)

    def abandon(self) -> None:
        """End the call if `answer` was never awaited, or not even begun before it was cancelled. Idempotent."""
        self._wait.leave()
        self._call.abandon()


class CniCalls:
    """Answers calls of the plugin."""

    def __init__(  # noqa: PLR0913 - who answers, what is told of it, and what it runs in
        self,
        addresses: Addresses,
        notes: DeletionNotes,
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

    def receive(
        self, body: bytes, *, arrived: float, respond: Callable[[Answer], None]
    ) -> PendingCall | None:
        """Carry out the call in the body of a plugin's request, which reached the agent at `arrived`: decode and `start`."""
        try:
            environment, stdin = decode_call(body)
        except InvalidInput as error:
            respond(refusal(error, b""))
            return None
        return self.start(environment, stdin, arrived=arrived, respond=respond)

    async def reply(self, body: bytes, *, arrived: float) -> Answer:
        """`receive`, and the wait if there is one. When cancelled, an ADD leaves the queue and takes no address later."""
        answers: list[Answer] = []
        pending = self.receive(body, arrived=arrived, respond=answers.append)
        return answers[0] if pending is None else await pending.answer()

    def start(
        self,
        environment: Mapping[str, str],
        stdin: bytes,
        *,
        arrived: float,
        respond: Callable[[Answer], None],
    ) -> PendingCall | None:
        """Carry out a call of the plugin. Returns it if it has to wait.

        One that needs no wait is logged after `respond` was called with its answer, so that no caller waits for the log.
        """
        call = self._calls.call(arrived)
        with call as entry:
            try:
                output = self._carry_out(environment, stdin, arrived, entry)
            except Exception as error:  # noqa: BLE001 - whatever it is, the runtime gets a CNI error
                entry.error = error
                respond(refusal(error, stdin))
                return None
            if isinstance(output, _Wait):
                entry.is_pending = True
                return PendingCall(call, stdin, output)
            respond(Answer(0, output))
            return None

    def _carry_out(
        self, environment: Mapping[str, str], stdin: bytes, arrived: float, entry: CallEntry
    ) -> bytes | _Wait:
        entry.verb = environment.get("CNI_COMMAND", "")
        call = parse_environment(environment)
        match call.verb:
            case Verb.ADD:
                return self._add(call, stdin, arrived, entry)
            case Verb.DEL:
                return self._delete(call, stdin, entry)
            case Verb.CHECK:
                return self._check(call, stdin, entry)
            case Verb.STATUS:
                return self._status(stdin)
            case Verb.GC:
                return self._collect_garbage(stdin)
            case Verb.VERSION:
                return msgspec.json.encode(version_answer(_stated_version(stdin)))

    def _add(self, call: CniCall, stdin: bytes, arrived: float, entry: CallEntry) -> bytes | _Wait:
        config = _config(Verb.ADD, stdin)
        if call.pod.ips or call.pod.gateways:
            config = with_arguments(config, call.pod)
        owner = entry.owner = owner_of(call, config.name)
        if not config.is_primary:
            secondary = self._require_secondary(config)
            return _Wait(partial(secondary.add, owner, config, arrived, entry))
        if self._notes.carry_out(owner.sandbox, owner.interface):
            # The DEL in the note was called before this ADD, though it is carried out only now.
            arrived = self._clock.monotonic()
        added = self._addresses.start_add(owner, arrived=arrived)
        if isinstance(added, PendingAdd):
            return _Wait(partial(_added_later, added, config, entry), added.leave)
        return _added(added, config, entry)

    def _delete(self, call: CniCall, stdin: bytes, entry: CallEntry) -> bytes | _Wait:
        # The rest of the configuration is not validated: whatever became of it, the sandbox must be freed.
        require_verb(Verb.DEL, _version(stdin))
        owner = entry.owner = owner_of(call)
        if self._secondary is None:
            return self._let_go(owner, entry)
        if not may_have_ranges(stdin):
            self._let_go(owner, entry)
            if not self._secondary.knows(owner):
                return _NOTHING
        return _Wait(partial(self._secondary.delete, owner, stdin, entry))

    def _let_go(self, owner: Owner, entry: CallEntry) -> bytes:
        entry.addresses = tuple(each.ip for each in self._addresses.delete(owner))
        return _NOTHING

    def _check(self, call: CniCall, stdin: bytes, entry: CallEntry) -> bytes | _Wait:
        config = _config(Verb.CHECK, stdin)
        secondary = None if config.is_primary else self._require_secondary(config)
        owner = entry.owner = owner_of(call, config.name)
        stated = {item.ip for item in previous_addresses(stdin)}
        if secondary is not None:
            return _Wait(partial(secondary.check, owner, config, stated, entry))
        try:
            held = self._addresses.check(owner)
        except NotAssigned as error:
            raise UnknownContainer(str(error)) from error
        entry.addresses = tuple(each.ip for each in held)
        require_stated(tuple(map(parse_address, entry.addresses)), stated, owner)
        return _NOTHING

    def _status(self, stdin: bytes) -> bytes | _Wait:
        config = _config(Verb.STATUS, stdin)
        if not config.is_primary:
            return _Wait(self._require_secondary(config).status)
        try:
            self._addresses.require_ready()
        except NotReady as error:
            raise NotAvailable(str(error)) from error
        return _NOTHING

    def _collect_garbage(self, stdin: bytes) -> bytes | _Wait:
        config = _config(Verb.GC, stdin)
        alive = frozenset((each.container_id, each.ifname) for each in valid_attachments(stdin))
        if not config.name:
            raise InvalidConfig(
                "GC needs the network's name in its configuration: it frees what is that network's"
            )
        if config.is_primary:
            self._addresses.collect_garbage(config.name, alive)
        elif self._secondary is not None:
            return _Wait(partial(self._secondary.collect_garbage, config, alive))
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


async def _added_later(pending: PendingAdd, config: IpamConfig, entry: CallEntry) -> bytes:
    return _added(await pending.wait(), config, entry)


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
