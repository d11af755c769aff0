"""What an IPAM configuration means: where addresses come from, and what goes with them into the answer.

Whatever Whereabouts accepts is accepted, and what is ignored along the way is said in `warnings`. Podtide asks for
less: the node agent has credentials of its own, so neither `kubernetes.kubeconfig` nor a flat file has to be there,
and a network of type podtide needs no range: it is the primary one, whose addresses come from the node's pool.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

from podtide.cni.addresses import parse_interface
from podtide.cni.arguments import PodArguments
from podtide.cni.documents import canonical, decode, read, refuse_misspelt
from podtide.cni.ipam_keys import AddressKeys, IpamKeys, RangeKeys, filled
from podtide.cni.network_config import NetworkConfig, find_ipam
from podtide.cni.results import AssignedAddress, Dns, Result, Route
from podtide.core.errors import InvalidConfig, InvalidInput, InvalidSlice
from podtide.core.networks.slices import parse_slice_size
from podtide.core.ranges import AddressRange, IPAddress, parse_address, parse_range

_OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_ONE_FOR_EACH_FAMILY: Final = ("0.1.0", "0.2.0")


class IpamRange(msgspec.Struct, frozen=True, kw_only=True):
    """One range of the network. `slice_size` is the prefix length of a node's slice, None in classic mode."""

    addresses: AddressRange
    slice_size: int | None
    keys: RangeKeys
    """The range as written, for those who explain it."""


class IpamConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed IPAM configuration."""

    type: str
    name: str
    cni_version: str
    network_name: str
    ranges: tuple[IpamRange, ...]
    gateway: IPAddress | None
    addresses: tuple[AssignedAddress, ...]
    routes: tuple[Route, ...]
    dns: Dns
    enable_overlapping_ranges: bool
    leader_lease_duration_ms: int
    leader_renew_deadline_ms: int
    leader_retry_period_ms: int
    log_file: str
    log_level: str
    kubeconfig: str
    configuration_path: str
    reconciler_cron_expression: str
    warnings: tuple[str, ...]

    @property
    def is_primary(self) -> bool:
        """Whether addresses come from the node's pool."""
        return not self.ranges

    def result(self, given: Iterable[AssignedAddress]) -> Result:
        """The answer to ADD: the dynamic addresses, then the static ones, with routes and DNS.

        The network's gateway goes with every dynamic address of its family that has none of its own.
        """
        dynamic = (
            AssignedAddress(item.address, self.gateway)
            if item.gateway is None and self.gateway and self.gateway.version == item.address.version
            else item
            for item in given
        )
        return Result(addresses=(*dynamic, *self.addresses), routes=self.routes, dns=self.dns)


def parse_config(text: bytes | str, flat: bytes | str = b"") -> IpamConfig:
    """Parse the configuration of a plugin, or of a list of plugins; `flat` is the flat file, if there is one."""
    return understand(find_ipam(text), flat)


def understand(network: NetworkConfig, flat: bytes | str = b"") -> IpamConfig:
    """The configuration that the keys describe, after the flat file filled the empty ones."""
    warnings: list[str] = []
    keys = filled(network.ipam, _flat_keys(flat, warnings)) if flat.strip() else network.ipam
    if keys.network_name and not _OBJECT_NAME.fullmatch(keys.network_name):
        raise InvalidConfig(
            f"network_name {keys.network_name!r} cannot be part of an object's name; "
            "use lower-case letters, digits, '-' and '.'"
        )
    addresses = tuple(map(_static, keys.addresses))
    _fit(addresses, network.cni_version)
    return IpamConfig(
        type=keys.type,
        name=network.name,
        cni_version=network.cni_version,
        network_name=keys.network_name,
        ranges=_ranges(keys, warnings),
        gateway=_gateway(keys.gateway),
        addresses=addresses,
        routes=tuple(map(_route, keys.routes)),
        dns=keys.dns,
        enable_overlapping_ranges=keys.enable_overlapping_ranges is not False,
        leader_lease_duration_ms=keys.leader_lease_duration or 1500,
        leader_renew_deadline_ms=keys.leader_renew_deadline or 1000,
        leader_retry_period_ms=keys.leader_retry_period or 500,
        log_file=keys.log_file,
        log_level=keys.log_level,
        kubeconfig=keys.kubernetes.kubeconfig,
        configuration_path=keys.configuration_path,
        reconciler_cron_expression=keys.reconciler_cron_expression,
        warnings=tuple(warnings),
    )


def with_arguments(config: IpamConfig, arguments: PodArguments) -> IpamConfig:
    """The configuration with the addresses and gateways a user asked for in CNI_ARGS.

    A gateway goes to the static addresses whose network it is in.
    """
    addresses = [*config.addresses, *map(AssignedAddress, arguments.ips)]
    for gateway in arguments.gateways:
        addresses = [
            AssignedAddress(item.address, gateway) if gateway in item.address.network else item
            for item in addresses
        ]
    _fit(addresses, config.cni_version)
    return msgspec.structs.replace(config, addresses=tuple(addresses))


def _flat_keys(flat: bytes | str, warnings: list[str]) -> IpamKeys:
    document = decode(flat, "flat file")
    refuse_misspelt(document, IpamKeys, "flat file")
    keys = read(canonical(document, IpamKeys), IpamKeys, "flat file")
    if keys.enable_overlapping_ranges is None:
        return keys
    warnings.append(
        "enable_overlapping_ranges in the flat file is ignored: set it in the network's own configuration, "
        "which every node and the controller read"
    )
    return msgspec.structs.replace(keys, enable_overlapping_ranges=None)


def _ranges(keys: IpamKeys, warnings: list[str]) -> tuple[IpamRange, ...]:
    """The ranges in the order in which a pod gets their addresses: `range` first."""
    own = (msgspec.convert(keys, RangeKeys, from_attributes=True),) if keys.range else ()
    ranges = tuple(_range(item, keys, warnings) for item in (*own, *keys.ip_ranges))
    if not ranges and keys.type != "podtide":
        raise InvalidConfig(
            f"ipam of type {keys.type} has no range; set 'range' or 'ipRanges', as in 10.0.0.0/24"
        )
    if not ranges:
        warnings.extend(
            f"{key} is ignored: without a range, addresses come from the node's pool"
            for key in ("range_start", "range_end", "exclude", "node_slice_size", "fast_ipam")
            if getattr(keys, key)
        )
    return ranges


def _range(item: RangeKeys, keys: IpamKeys, warnings: list[str]) -> IpamRange:
    parsed = parse_range(
        item.range, start=item.range_start, end=item.range_end, excludes=item.exclude, gateway=keys.gateway
    )
    warnings.extend(parsed.warnings)
    return IpamRange(addresses=parsed.range, slice_size=_slice_size(item, keys, parsed.range), keys=item)


def _slice_size(item: RangeKeys, keys: IpamKeys, addresses: AddressRange) -> int | None:
    """The range's own slice size, else the network's. `fast_ipam` false turns both off, true demands one."""
    size = str(item.node_slice_size or keys.node_slice_size)
    if keys.fast_ipam is False or not size:
        if keys.fast_ipam:
            raise InvalidConfig(
                f"fast_ipam needs a node_slice_size for range {addresses}; set one, as in '/24'"
            )
        return None
    try:
        return parse_slice_size(size, addresses)
    except InvalidSlice as error:
        if item.node_slice_size:
            raise
        raise InvalidSlice(f"{error} (ipRanges[].node_slice_size sets it for one range alone)") from error


def _gateway(text: str) -> IPAddress | None:
    try:
        return parse_address(text) if text else None
    except InvalidInput as error:
        raise InvalidConfig(f"gateway: {error}") from error


def _static(keys: AddressKeys) -> AssignedAddress:
    try:
        return AssignedAddress(parse_interface(keys.address), _gateway(keys.gateway))
    except InvalidInput as error:
        raise InvalidConfig(f"addresses: {error}") from error


def _route(route: Route) -> Route:
    """The route with its addresses in their usual form. Host bits stay: they are the caller's."""
    try:
        gateway = str(parse_address(route.gw)) if route.gw else ""
        return msgspec.structs.replace(route, dst=str(parse_interface(route.dst)), gw=gateway)
    except InvalidInput as error:
        raise InvalidConfig(f"routes: {error}") from error


def _fit(addresses: Iterable[AssignedAddress], cni_version: str) -> None:
    """Refuse more static addresses than the caller's version of the result has room for."""
    if cni_version not in _ONE_FOR_EACH_FAMILY:
        return
    for family, count in Counter(item.address.version for item in addresses).items():
        if count > 1:
            raise InvalidConfig(
                f"cniVersion {cni_version} carries one address of each family, and {count} of IPv{family} are static; "
                "use cniVersion 0.3.0 or later"
            )
