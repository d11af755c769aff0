"""The secondary networks that NetworkAttachmentDefinitions describe, read leniently.

A list of a whole cluster has definitions of other plugins, of the primary network, and mistakes. None of them may keep
the rest from being read, so each is parsed by itself, with one of three results.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from podtide.cni.errors import ForeignIpam
from podtide.cni.ipam_config import IpamConfig, parse_config
from podtide.cni.network_config import IPAM_TYPES
from podtide.core.errors import InvalidInput
from podtide.networks.network import Network, network_of
from podtide.resources.base import Key
from podtide.resources.network_attachment import NetworkAttachmentDefinition


class AttachedNetwork(Struct, frozen=True, kw_only=True):
    """A secondary network as one NetworkAttachmentDefinition has it."""

    attachment: Key
    config: IpamConfig
    network: Network


class NotOurs(Struct, frozen=True):
    """A definition that podtide does not serve: another plugin's, or of the primary network."""

    attachment: Key


class Unreadable(Struct, frozen=True):
    """A definition for podtide that is invalid, with the sentence that says why."""

    attachment: Key
    words: str


def read_attachment(attachment: NetworkAttachmentDefinition) -> AttachedNetwork | NotOurs | Unreadable:
    """The network that the definition describes, or why there is none."""
    text = attachment.spec.config
    try:
        config = parse_config(text)
        network = network_of(config)
        _check_names(network)
    except ForeignIpam:
        return NotOurs(attachment.key)
    except InvalidInput as error:
        # A definition that does not name an IPAM type of ours is another plugin's, however broken.
        is_ours = any(f'"{word}"' in text for word in IPAM_TYPES)
        return Unreadable(attachment.key, str(error)) if is_ours else NotOurs(attachment.key)
    if network is None:
        return NotOurs(attachment.key)
    return AttachedNetwork(attachment=attachment.key, config=config, network=network)


def _check_names(network: Network | None) -> None:
    """Refuse a network whose pools would have invalid names: they could never be created."""
    for item in network.ranges if network else ():
        if item.slice_size is None:
            item.classic_pool_name()
        else:
            item.node_slice_pool_name()


def attached_networks(attachments: Iterable[NetworkAttachmentDefinition]) -> Iterator[AttachedNetwork]:
    """The networks of the valid definitions."""
    for attachment in attachments:
        found = read_attachment(attachment)
        if isinstance(found, AttachedNetwork):
            yield found
