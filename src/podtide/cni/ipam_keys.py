"""The keys of an `ipam` object as they are written, before they are interpreted (design W15).

`datastore`, `etcd_*` and `sleep_for_race` are keys of the peer that mean nothing here; they are ignored like any other
unknown key.
"""

from typing import Annotated, Any, TypeVar

import msgspec

from podtide.cni.results import Dns, Route

K = TypeVar("K", bound=msgspec.Struct)

Milliseconds = Annotated[int, msgspec.Meta(ge=0)]


class RangeKeys(msgspec.Struct, frozen=True, kw_only=True):
    """One range: an item of `ipRanges`, or the keys of the same names in the `ipam` object itself."""

    range: str = ""
    range_start: str = ""
    range_end: str = ""
    exclude: tuple[str, ...] = ()
    node_slice_size: str | int = ""


class AddressKeys(msgspec.Struct, frozen=True, kw_only=True):
    """A static address, given to every pod on top of the dynamic ones."""

    address: str = ""
    gateway: str = ""


class KubernetesKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Where Whereabouts finds its credentials."""

    kubeconfig: str = ""


class IpamKeys(RangeKeys, frozen=True, kw_only=True):
    """The `ipam` object."""

    type: str = ""
    ip_ranges: tuple[RangeKeys, ...] = msgspec.field(default=(), name="ipRanges")
    gateway: str = ""
    addresses: tuple[AddressKeys, ...] = ()
    routes: tuple[Route, ...] = ()
    dns: Dns = Dns()
    enable_overlapping_ranges: bool | None = None
    fast_ipam: bool | None = None
    network_name: str = ""
    leader_lease_duration: Milliseconds = 0
    leader_renew_deadline: Milliseconds = 0
    leader_retry_period: Milliseconds = 0
    log_file: str = ""
    log_level: str = ""
    kubernetes: KubernetesKeys = KubernetesKeys()
    configuration_path: str = ""
    reconciler_cron_expression: str = ""


def filled(inline: K, flat: K) -> K:
    """The inline keys, with what is empty there filled from the flat file.

    An empty text, list or zero is as good as absent. A boolean never is: an inline false was meant.
    """
    return type(inline)(
        **{name: _filled(getattr(inline, name), getattr(flat, name)) for name in inline.__struct_fields__}
    )


def _filled(value: Any, below: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return filled(value, below)
    return value if value or value is False else below
