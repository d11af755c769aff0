"""The call itself: the CNI_* environment variables, and what the kubelet puts in CNI_ARGS.

Which variables a verb needs is the specification's choice (1.1.0, section 2), and so is that an error names the
variables at fault.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from podtide.cni.addresses import IPInterface, parse_interface
from podtide.cni.errors import InvalidEnvironment
from podtide.cni.versions import Verb
from podtide.core.errors import InvalidInput
from podtide.core.ranges import IPAddress, parse_address

_ATTACHMENT = frozenset({"CNI_CONTAINERID", "CNI_IFNAME"})
_REQUIRED: Final[dict[Verb, frozenset[str]]] = {
    Verb.ADD: _ATTACHMENT | {"CNI_NETNS"},
    Verb.DEL: _ATTACHMENT,  # the network namespace may be gone by then
    Verb.CHECK: _ATTACHMENT | {"CNI_NETNS"},
    Verb.STATUS: frozenset(),
    Verb.GC: frozenset({"CNI_PATH"}),
    Verb.VERSION: frozenset(),
}

_CONTAINER_ID = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.\-]*")
_IFNAME = re.compile(r"(?!\.{1,2}$)[^/:\s]+")
_IFNAME_BYTES = 15  # Linux's IFNAMSIZ is 16, with the terminator


class PodArguments(msgspec.Struct, frozen=True, kw_only=True):
    """CNI_ARGS: which pod this is for, and addresses a user asked for by hand."""

    pod_name: str = ""
    pod_namespace: str = ""
    pod_uid: str = ""
    infra_container_id: str = ""
    ips: tuple[IPInterface, ...] = ()
    gateways: tuple[IPAddress, ...] = ()


class CniCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of the plugin."""

    verb: Verb
    container_id: str = ""
    netns: str = ""
    ifname: str = ""
    plugin_path: tuple[str, ...] = ()
    pod: PodArguments = PodArguments()


def parse_environment(environment: Mapping[str, str]) -> CniCall:
    """The call that these environment variables describe. Empty counts as missing, as it does for every plugin."""
    verb = _verb(environment.get("CNI_COMMAND", ""))
    if not all(map(environment.get, _REQUIRED[verb])):
        missing = sorted(name for name in _REQUIRED[verb] if not environment.get(name))
        raise InvalidEnvironment(f"{verb} needs {', '.join(missing)} in its environment; set and not empty")
    container_id = environment.get("CNI_CONTAINERID", "")
    if container_id and not _CONTAINER_ID.fullmatch(container_id):
        raise InvalidEnvironment(
            f"CNI_CONTAINERID {container_id!r} is no container id; "
            "it begins with a letter or digit and goes on with those, '_', '.' or '-'"
        )
    ifname = environment.get("CNI_IFNAME", "")
    if ifname and not _is_interface_name(ifname):
        raise InvalidEnvironment(
            f"CNI_IFNAME {ifname!r} is no interface name; it has at most {_IFNAME_BYTES} bytes, no '/', ':' or space"
        )
    return CniCall(
        verb=verb,
        container_id=container_id,
        netns=environment.get("CNI_NETNS", ""),
        ifname=ifname,
        plugin_path=_directories(environment.get("CNI_PATH", "")),
        pod=parse_cni_args(environment.get("CNI_ARGS", "")),
    )


def _verb(command: str) -> Verb:
    try:
        return Verb(command)
    except ValueError:
        said = f"CNI_COMMAND {command!r} is unknown" if command else "CNI_COMMAND is not set"
        raise InvalidEnvironment(f"{said}; it is one of {', '.join(Verb)}") from None


@lru_cache(maxsize=64)  # a runtime says the same for pod after pod
def _directories(path: str) -> tuple[str, ...]:
    return tuple(filter(None, path.split(":")))


@lru_cache(maxsize=64)
def _is_interface_name(text: str) -> bool:
    return bool(_IFNAME.fullmatch(text)) and len(text.encode(errors="replace")) <= _IFNAME_BYTES


_FIELDS: Final = {
    "K8S_POD_NAME": "pod_name",
    "K8S_POD_NAMESPACE": "pod_namespace",
    "K8S_POD_UID": "pod_uid",
    "K8S_POD_INFRA_CONTAINER_ID": "infra_container_id",
}
_TRUTH: Final = {"1": True, "true": True, "0": False, "false": False}


def parse_cni_args(text: str) -> PodArguments:
    """`KEY=VALUE;KEY=VALUE`. A key podtide does not know is an error, unless IgnoreUnknown is among the keys."""
    given = _pairs(text) if text else {}
    known = {field: given.pop(key) for key, field in _FIELDS.items() if key in given}
    ips = given.pop("IP", "")
    gateways = given.pop("GATEWAY", "")
    ignore = given.pop("IgnoreUnknown", "0")
    if ignore.lower() not in _TRUTH:
        raise InvalidEnvironment(f"CNI_ARGS has IgnoreUnknown={ignore!r}; use 1 or 0, true or false")
    if given and not _TRUTH[ignore.lower()]:
        raise InvalidEnvironment(
            f"CNI_ARGS has unknown keys {', '.join(map(repr, given))}; add IgnoreUnknown=1 to have them ignored"
        )
    try:
        return PodArguments(
            **known,
            ips=tuple(parse_interface(item.strip()) for item in ips.split(",")) if ips else (),
            gateways=tuple(parse_address(item.strip()) for item in gateways.split(",")) if gateways else (),
        )
    except InvalidInput as error:
        raise InvalidEnvironment(f"CNI_ARGS has an IP or GATEWAY that cannot be used: {error}") from error


def _pairs(text: str) -> dict[str, str]:
    pairs = {}
    for part in text.split(";"):
        key, equals, value = part.partition("=")
        if not equals or "=" in value:
            raise InvalidEnvironment(f"CNI_ARGS has {part!r} between its semicolons; each part is KEY=VALUE")
        pairs[key] = value
    return pairs
