"""The CNI verbs, answered from the node's addresses: what the plugin prints is what is said here.

Nothing that goes wrong escapes: it becomes a CNI error in one line, and only what nobody foresaw leaves a traceback,
in the log. The runtime acts on the code alone (`podtide.cni.errors` chooses it), so most of this is about raising the
right kind of error at the right time: whatever can be refused is refused before an address is taken.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache

import msgspec
from msgspec import Struct

from podtide.agent.call_log import CallEntry, CallLog, Count, uncounted
from podtide.agent.notes import Notes
from podtide.agent.owners import owner_of
from podtide.agent.plugin_protocol import Answer
from podtide.agent.port import Addresses, Given, NoAddress, NotAssigned, NotReady
from podtide.cni.addresses import interface
from podtide.cni.arguments import Call, parse_environment
from podtide.cni.attachments import previous_addresses, valid_attachments
from podtide.cni.documents import decode
from podtide.cni.errors import NotAvailable, UnknownContainer, error_answer
from podtide.cni.ipam_config import IpamConfig, parse_config, with_arguments
from podtide.cni.results import AssignedAddress, render_result
from podtide.cni.versions import LATEST, SUPPORTED, Verb, require_verb, version_answer
from podtide.core.errors import InvalidConfig, PodtideError
from podtide.core.pool import Owner
from podtide.core.ranges import parse_address, parse_network
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger

_NOTHING = b""


class _Wait(Struct, frozen=True):
    """An ADD that has to wait for an address: nothing else speaks against it."""

    owner: Owner
    config: IpamConfig
    arrived: float


class CniCalls:
    """What the plugin asks, and what it is answered."""

    def __init__(
        self, addresses: Addresses, notes: Notes, *, clock: Clock, log: Logger, count: Count = uncounted
    ) -> None:
        self._addresses = addresses
        self._notes = notes
        self._clock = clock
        self._calls = CallLog("cni", clock=clock, log=log, count=count)

    async def answer(self, environment: Mapping[str, str], stdin: bytes, *, arrived: float) -> Answer:
        """The answer to one call of the plugin; `arrived` is when it reached the agent.

        When this is cancelled an ADD that waits takes no address later.
        """
        with self._calls.call(arrived) as entry:
            try:
                output = self._carry_out(environment, stdin, arrived, entry)
                if isinstance(output, _Wait):
                    given = await self._addresses.add(output.owner, arrived=output.arrived)
                    output = _added(given, output.config, entry)
                return Answer(0, output)
            except Exception as error:  # noqa: BLE001 - whatever it is, the runtime must be told in its own words
                entry.error = error
                return refusal(error, stdin)

    def answer_now(
        self, environment: Mapping[str, str], stdin: bytes, *, arrived: float, give: Callable[[Answer], None]
    ) -> float | None:
        """Give the answer to a call that needs no wait. Of an ADD that does, say for `answer` when it arrived.

        It is written down after it is given, so that no caller waits for the log.
        """
        with self._calls.call(arrived) as entry:
            try:
                output = self._carry_out(environment, stdin, arrived, entry)
            except Exception as error:  # noqa: BLE001 - whatever it is, the runtime must be told in its own words
                entry.error = error
                give(refusal(error, stdin))
                return None
            if isinstance(output, _Wait):
                entry.is_over = False
                return output.arrived
            give(Answer(0, output))
            return None

    def _carry_out(
        self, environment: Mapping[str, str], stdin: bytes, arrived: float, entry: CallEntry
    ) -> "bytes | _Wait":
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

    def _add(self, call: Call, stdin: bytes, arrived: float, entry: CallEntry) -> "bytes | _Wait":
        config = _config(Verb.ADD, stdin)
        if call.pod.ips or call.pod.gateways:
            config = with_arguments(config, call.pod)
        _require_pool(config)
        owner = entry.owner = owner_of(call, config.name)
        if self._notes.carry_out(owner.sandbox, owner.interface):
            # The DEL in the note came first, though it is carried out only now.
            arrived = self._clock.monotonic()
        given = self._addresses.add_now(owner, arrived=arrived)
        return _Wait(owner, config, arrived) if given is None else _added(given, config, entry)

    def _delete(self, call: Call, stdin: bytes, entry: CallEntry) -> bytes:
        # What else the configuration says is not asked: whatever became of it, the sandbox must be let go.
        require_verb(Verb.DEL, _version(decode(stdin, "network configuration")))
        owner = entry.owner = owner_of(call)
        entry.addresses = tuple(each.ip for each in self._addresses.delete(owner))
        return _NOTHING

    def _check(self, call: Call, stdin: bytes, entry: CallEntry) -> bytes:
        config = _config(Verb.CHECK, stdin)
        _require_pool(config)
        owner = entry.owner = owner_of(call, config.name)
        stated = {item.ip for item in previous_addresses(stdin)}
        try:
            held = self._addresses.check(owner)
        except NotAssigned as error:
            raise UnknownContainer(str(error)) from error
        entry.addresses = tuple(each.ip for each in held)
        missing = [each.ip for each in held if parse_address(each.ip) not in stated]
        if missing:
            raise NotAssigned(
                f"prevResult lacks {', '.join(missing)}, which {owner.sandbox} has on {owner.interface}: "
                "it is the answer to another ADD; make the sandbox anew"
            )
        return _NOTHING

    def _status(self, stdin: bytes) -> bytes:
        _require_pool(_config(Verb.STATUS, stdin))
        try:
            self._addresses.require_ready()
        except NotReady as error:
            raise NotAvailable(str(error)) from error
        return _NOTHING

    def _collect_garbage(self, stdin: bytes) -> bytes:
        config = _config(Verb.GC, stdin)
        alive = valid_attachments(stdin)
        if not config.name:
            raise InvalidConfig(
                "GC needs the network's name in its configuration: it frees what is that network's"
            )
        if config.is_primary:
            self._addresses.collect_garbage(
                config.name, frozenset((each.container_id, each.ifname) for each in alive)
            )
        return _NOTHING


def refusal(error: Exception, stdin: bytes) -> Answer:
    """The answer that a call failed with this error, in the version that the configuration states."""
    version = _stated_version(stdin)
    answer = error_answer(error, version if version in SUPPORTED else LATEST)
    one_line = msgspec.structs.replace(answer, msg=" ".join(answer.msg.split()))
    return Answer(1, msgspec.json.encode(one_line))


_parsed = lru_cache(maxsize=8)(parse_config)
"""A runtime sends the same configuration for pod after pod."""


def _config(verb: Verb, stdin: bytes) -> IpamConfig:
    config = _parsed(stdin)
    require_verb(verb, config.cni_version)
    return config


def _added(given: tuple[Given, ...], config: IpamConfig, entry: CallEntry) -> bytes:
    if not given:
        raise NoAddress("the node's pool gave no address: try again, and report this")
    entry.addresses = tuple(each.ip for each in given)
    return render_result(config.result(map(assigned, given)), config.cni_version)


def _require_pool(config: IpamConfig) -> None:
    if not config.is_primary:
        raise InvalidConfig(
            f"network {config.name!r} has a range of its own, and this agent serves the node's pool alone: "
            "take 'range' and 'ipRanges' out of its ipam"
        )


@lru_cache(maxsize=256)
def assigned(given: Given) -> AssignedAddress:
    """The address with its network's prefix length and gateway; alone where nothing is known of its network."""
    address = parse_address(given.ip)
    prefix_length = parse_network(given.subnet).prefixlen if given.subnet else address.max_prefixlen
    return AssignedAddress(
        interface(address, prefix_length), parse_address(given.gateway) if given.gateway else None
    )


def _stated_version(stdin: bytes) -> str:
    """The version a configuration states, "" where there is none to be found."""
    try:
        return _version(decode(stdin, "network configuration"))
    except PodtideError:
        return ""


def _version(document: Mapping[str, object]) -> str:
    stated = next((value for key, value in document.items() if key.lower() == "cniversion"), "")
    return stated if isinstance(stated, str) else ""
