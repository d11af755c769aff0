"""Where in a network configuration the IPAM object is, and whether it is podtide's at all.

A runtime sends the configuration of a single plugin. A NetworkAttachmentDefinition holds that, or a list of plugins.
People who ask the command line also paste the bare IPAM object, or the whole NetworkAttachmentDefinition.
"""

from typing import Any, Final

import msgspec

from podtide.cni.documents import Document, canonical, decode, read, refuse_misspelt
from podtide.cni.errors import ForeignIpam
from podtide.cni.ipam_keys import IpamKeys
from podtide.core.errors import InvalidConfig
from podtide.core.similar_keys import near_miss

IPAM_TYPES: Final = ("podtide", "whereabouts")

_HOLDERS: Final = {"ipam": "the IPAM object", "plugins": "the list of plugins"}
"""What of a network configuration has the IPAM object in it. All other keys there are the interface plugins' own."""

FLAT_FILE_PATHS: Final = (
    "/etc/kubernetes/cni/net.d/whereabouts.d/whereabouts.conf",
    "/etc/cni/net.d/whereabouts.d/whereabouts.conf",
)


class _Plugin(msgspec.Struct, frozen=True, kw_only=True):
    ipam: dict[str, Any] | None = None


class _Network(_Plugin, frozen=True, kw_only=True):
    name: str = ""
    cni_version: str = msgspec.field(default="", name="cniVersion")
    plugins: tuple[_Plugin, ...] = ()


class NetworkConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The network a configuration is for, and its IPAM keys."""

    name: str
    cni_version: str
    ipam: IpamKeys

    @property
    def flat_file_paths(self) -> tuple[str, ...]:
        """The paths of the flat file that fills empty keys; the first that exists is used."""
        return tuple(filter(None, (self.ipam.configuration_path, *FLAT_FILE_PATHS)))


def find_ipam(text: bytes | str) -> NetworkConfig:
    """The first IPAM object of podtide's in a plugin's configuration or a list of plugins.

    ForeignIpam when another plugin assigns the addresses of this network.
    """
    return _find(decode(text, "network configuration"))


def find_ipam_anywhere(text: bytes | str) -> NetworkConfig:
    """`find_ipam`, also in a NetworkAttachmentDefinition and in a bare IPAM object (of type whereabouts if it says none)."""
    document = decode(text, "IPAM configuration")
    spec = document.get("spec")
    if isinstance(spec, dict) and isinstance(spec.get("config"), str):
        return _find(decode(spec["config"], "spec.config"))
    if not canonical(document, _Network).keys() & _HOLDERS.keys():
        _refuse_misspelt_holder(document)
        document = {"ipam": {"type": "whereabouts"} | document}
    return _find(document)


def _find(document: Document) -> NetworkConfig:
    network = read(canonical(document, _Network), _Network, "network configuration")
    found = [plugin.ipam for plugin in network.plugins or (network,) if plugin.ipam]
    if not found:
        _refuse_misspelt_holder(document)
        raise InvalidConfig(
            "network configuration has no 'ipam' object; add one of type podtide or whereabouts"
        )
    types = []
    for ipam in found:
        document = canonical(ipam, IpamKeys)
        if document.get("type", IPAM_TYPES[0]) in IPAM_TYPES:
            refuse_misspelt(ipam, IpamKeys, "ipam")
        if document.get("type") in IPAM_TYPES:
            return NetworkConfig(
                name=network.name,
                cni_version=network.cni_version,
                ipam=read(document, IpamKeys, "ipam"),
            )
        types.append(document.get("type", ""))
    raise ForeignIpam(
        f"ipam type is {' and '.join(map(repr, types))}; podtide answers for {' and '.join(IPAM_TYPES)}"
    )


def _refuse_misspelt_holder(document: Document) -> None:
    """InvalidConfig when a configuration in which no IPAM object was found has one under a misspelt key."""
    for key in document:
        if (meant := near_miss(key, _HOLDERS)) and meant != key.lower():
            raise InvalidConfig(
                f"network configuration has no key {key!r} (did you mean {meant!r}, {_HOLDERS[meant]}?): "
                "correct the spelling"
            )
