"""The API of Azure CNS, so that azure-ipam, azure-vnet and whoever else speaks it gets addresses from this agent.

It is another door to the same addresses: `requestipconfigs` is ADD, `releaseipconfigs` is DEL, keyed by the sandbox
(`infraContainerID`) and its interface. A refusal is an answer like any other, with a code in it; only a request that
cannot be decoded is an error of HTTP.
"""

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import msgspec

from podtide.agent.api.call_log import CallLog, Count, uncounted
from podtide.agent.api.cni_calls import assigned
from podtide.agent.api.cns_wire import (
    INFRA_NIC,
    WIRE_STATES,
    DebugRequest,
    DebugResponse,
    HostIpInfo,
    IpConfigRequest,
    IpConfigResponse,
    IpConfigsResponse,
    IpConfiguration,
    IpConfigurationStatus,
    IpSubnet,
    KubernetesPodInfo,
    PodInfo,
    PodIpInfo,
    Response,
    ReturnCode,
)
from podtide.agent.api.deletion_notes import DeletionNotes
from podtide.agent.port import Addresses, NoAddress, PodAddress
from podtide.cni.documents import canonical, decode, read
from podtide.cni.errors import Undecodable
from podtide.cni.versions import Verb
from podtide.core.errors import FixError, InvalidConfig, InvalidInput, RetryError, StopError
from podtide.core.pool.pool import Address, Owner
from podtide.core.ranges import parse_address
from podtide.resources.timestamps import to_time
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger

S = TypeVar("S", bound=msgspec.Struct)

_DEFAULT_IFNAME = "eth0"
_LONGEST_NAME = 253
_SHORT_ID_LENGTH = 8


class InvalidContext(InvalidInput):
    """The orchestrator context names no pod."""


class MissingContext(InvalidInput):
    """There is no orchestrator context."""


# The first kind that fits decides, so the special stand before the general.
_CODES: tuple[tuple[type[Exception], ReturnCode], ...] = (
    (MissingContext, ReturnCode.EMPTY_ORCHESTRATOR_CONTEXT),
    (InvalidContext, ReturnCode.UNSUPPORTED_ORCHESTRATOR_CONTEXT),
    (RetryError, ReturnCode.FAILED_TO_ALLOCATE_IP_CONFIG),
    (FixError, ReturnCode.INVALID_REQUEST),
    (StopError, ReturnCode.INCONSISTENT_IP_CONFIG_STATE),
)


class CnsAnswer(msgspec.Struct, frozen=True):
    """A code, which also goes into a header, and the document it is in."""

    code: ReturnCode
    document: bytes


Shape: TypeAlias = Callable[[tuple[PodIpInfo, ...], Response], msgspec.Struct]
"""How a call words its answer: the newer calls have a list of addresses, the older request has one."""


def several(infos: tuple[PodIpInfo, ...], response: Response) -> msgspec.Struct:
    """The shape of the newer calls, and of the older release."""
    return IpConfigsResponse(pod_ip_info=infos, response=response)


def one(infos: tuple[PodIpInfo, ...], response: Response) -> msgspec.Struct:
    """The shape of the older request."""
    return IpConfigResponse(pod_ip_info=infos[0] if infos else PodIpInfo(), response=response)


class CnsApi:
    """What clients of CNS ask, and what they are answered. Undecodable is raised, everything else answered."""

    def __init__(
        self,
        addresses: Addresses,
        notes: DeletionNotes,
        *,
        clock: Clock,
        log: Logger,
        count: Count = uncounted,
    ) -> None:
        self._addresses = addresses
        self._notes = notes
        self._clock = clock
        self._calls = CallLog("cns", clock=clock, log=log, count=count)

    async def request(self, body: bytes, shape: Shape, *, arrived: float) -> CnsAnswer:
        """The addresses of a sandbox's interface: ADD. When this is cancelled, none is taken later."""
        asked = _read(body, IpConfigRequest)
        with self._calls.call(arrived) as entry:
            entry.verb = Verb.ADD
            try:
                entry.owner = _owner(asked)
                given = await self._add(entry.owner, _wanted(asked), shape, arrived)
                entry.addresses = tuple(each.ip for each in given)
                return _answer(shape, ReturnCode.SUCCESS, infos=tuple(map(_info, given)))
            except Exception as error:  # noqa: BLE001 - whatever it is, the client must be told in its own words
                entry.error = error
                return refusal(error, shape)

    def release(self, body: bytes, *, arrived: float) -> CnsAnswer:
        """The sandbox's interface is gone: DEL."""
        asked = _read(body, IpConfigRequest)
        with self._calls.call(arrived) as entry:
            entry.verb = Verb.DEL
            try:
                entry.owner = _owner(asked)
                entry.addresses = tuple(each.ip for each in self._addresses.delete(entry.owner))
                return _answer(several, ReturnCode.SUCCESS)
            except Exception as error:  # noqa: BLE001 - as above
                entry.error = error
                return refusal(error, several)

    def show(self, body: bytes) -> CnsAnswer:
        """The pool's addresses in the states that are asked for."""
        wanted = set(_read(body, DebugRequest).states)
        document = DebugResponse(
            addresses=tuple(
                self._status(address, WIRE_STATES[address.state])
                for address in self._addresses.all_addresses()
                if address.state and WIRE_STATES[address.state] in wanted
            ),
            response=Response(ReturnCode.SUCCESS),
        )
        return CnsAnswer(ReturnCode.SUCCESS, msgspec.json.encode(document))

    async def _add(
        self, owner: Owner, wanted: tuple[str, ...], shape: Shape, arrived: float
    ) -> tuple[PodAddress, ...]:
        if shape is one and self._addresses.state().primaries > 1:
            raise InvalidInput(
                "this node gives a pod several addresses: ask for them by /network/requestipconfigs"
            )
        if self._notes.carry_out(owner.sandbox, owner.interface):
            arrived = (
                self._clock.monotonic()
            )  # the DEL in the note came first, though it is carried out only now
        given = await self._addresses.add(owner, arrived=arrived, wanted=wanted)
        if not given:
            raise NoAddress("the node's pool gave no address: try again, and report this")
        return given

    def _status(self, address: Address, state: str) -> IpConfigurationStatus:
        age_seconds = self._clock.monotonic() - address.since
        owner = address.owner
        return IpConfigurationStatus(
            state=state,
            name=address.name,
            ip_address=address.ip,
            last_state_transition=to_time(self._clock.wall() - age_seconds),
            container_id=address.container,
            pod_info=None
            if owner is None
            else PodInfo(
                pod_name=owner.name,
                pod_namespace=owner.namespace,
                pod_infra_container_id=owner.sandbox,
                pod_interface_id=f"{owner.sandbox[:_SHORT_ID_LENGTH]}-{owner.interface}",
            ),
        )


def refusal(error: Exception, shape: Shape) -> CnsAnswer:
    """The answer that a call failed with this error."""
    code = next((code for kind, code in _CODES if isinstance(error, kind)), ReturnCode.UNEXPECTED_ERROR)
    return _answer(shape, code, " ".join((str(error) or type(error).__name__).split()))


def _answer(
    shape: Shape, code: ReturnCode, message: str = "", infos: tuple[PodIpInfo, ...] = ()
) -> CnsAnswer:
    return CnsAnswer(code, msgspec.json.encode(shape(infos, Response(code, message))))


def _read(body: bytes, kind: type[S]) -> S:
    try:
        return read(canonical(decode(body, "the request"), kind), kind, "the request")
    except InvalidConfig as error:
        raise Undecodable(str(error)) from error


def _owner(asked: IpConfigRequest) -> Owner:
    pod = _pod(asked.orchestrator_context)
    ifname = asked.ifname or _DEFAULT_IFNAME
    if not asked.infra_container_id:
        raise InvalidInput("infraContainerID is empty: it is the sandbox that the addresses are for")
    for key, value in (("infraContainerID", asked.infra_container_id), ("ifname", ifname)):
        if len(value) > _LONGEST_NAME:
            raise InvalidInput(f"{key} has {len(value)} characters: give at most {_LONGEST_NAME}")
    return Owner(
        sandbox=asked.infra_container_id, interface=ifname, namespace=pod.pod_namespace, name=pod.pod_name
    )


def _pod(context: object) -> KubernetesPodInfo:
    if context is None:
        raise MissingContext("orchestratorContext is missing: it says which pod the sandbox is of")
    if isinstance(context, dict):
        try:
            pod = read(canonical(context, KubernetesPodInfo), KubernetesPodInfo, "orchestratorContext")
        except InvalidConfig as error:
            raise InvalidContext(str(error)) from error
        if pod.pod_name and pod.pod_namespace:
            return pod
    raise InvalidContext("orchestratorContext names no pod: it is an object with podName and podNamespace")


def _wanted(asked: IpConfigRequest) -> tuple[str, ...]:
    stated = (*asked.desired_ip_addresses, asked.desired_ip_address)
    return tuple(str(parse_address(address)) for address in stated if address)


def _info(given: PodAddress) -> PodIpInfo:
    prefix_length = assigned(given).address.network.prefixlen
    return PodIpInfo(
        pod_ip_config=IpSubnet(ip_address=given.ip, prefix_length=prefix_length),
        primary=IpConfiguration(
            ip_subnet=IpSubnet(ip_address=given.primary, prefix_length=prefix_length), gateway=given.gateway
        ),
        host=HostIpInfo(gateway=given.gateway, primary_ip=given.primary, subnet=given.subnet),
        nic_type=INFRA_NIC,
        container_id=given.container,
    )
