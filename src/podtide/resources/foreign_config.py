"""NodeNetworkConfigs that another program serves, such as those that DNC writes for Azure CNS.

podtide's own have its finalizer from their first moment, and their network containers have ids made from the Node's uid.
An object with neither is another program's, and its node may still hand out the addresses in it: podtide leaves it alone
until the node is handed over (`podtide migrate cns`), which puts the finalizer on it.

Two annotations are written for that. One names each network container with the version in which all of its addresses were
reserved at the allocator: if the other program changes one afterwards, that no longer holds. The other has the request
and the status as that program left them, for the way back.
"""

import msgspec
from msgspec import Struct, structs

from podtide.core.errors import InvalidInput
from podtide.resources.container_ids import container_ids
from podtide.resources.metadata_keys import BEFORE_ANNOTATION, CONTAINER_FINALIZER, RESERVED_ANNOTATION
from podtide.resources.node_network_config import (
    NodeNetworkConfig,
    NodeNetworkConfigSpec,
    NodeNetworkConfigStatus,
)
from podtide.runtime.foreign_json import UnreadableJson, decode_json

_OWN_PREFIX = "podtide.io/"


class FormerConfig(Struct, frozen=True):
    """A NodeNetworkConfig as the other program left it, but for its metadata."""

    spec: NodeNetworkConfigSpec = NodeNetworkConfigSpec()
    status: NodeNetworkConfigStatus = NodeNetworkConfigStatus()


def is_foreign(config: NodeNetworkConfig) -> bool:
    """Whether another program serves it: it has network containers, none of them podtide's, and not podtide's finalizer."""
    return has_foreign_containers(config) and CONTAINER_FINALIZER not in config.metadata.finalizers


def has_foreign_containers(config: NodeNetworkConfig) -> bool:
    """Whether its status is as another program wrote it.

    An object of podtide's whose status shows containers of a former Node, because somebody put an old status back, is
    none: it has the finalizer, and no mark of a take-over.
    """
    marks = config.metadata.annotations
    is_in_take_over = RESERVED_ANNOTATION in marks or BEFORE_ANNOTATION in marks
    if CONTAINER_FINALIZER in config.metadata.finalizers and not is_in_take_over:
        return False
    ids = {container.id for container in config.status.network_containers if container.id}
    return bool(config.node_uid and ids) and ids.isdisjoint(container_ids(config.node_uid))


def own_ids(config: NodeNetworkConfig) -> dict[str, str]:
    """The id that each network container has at podtide's allocator: its own, or the one for its family."""
    shown = [each for each in config.status.network_containers if each.id]
    if not has_foreign_containers(config):
        return {each.id: each.id for each in shown}
    first, second = container_ids(config.node_uid)
    has_v4 = any(each.primary_ip for each in shown)
    return {each.id: second if has_v4 and not each.primary_ip else first for each in shown}


def is_reserved(config: NodeNetworkConfig) -> bool:
    """Whether all that it shows now was reserved at the allocator."""
    return config.metadata.annotations.get(RESERVED_ANNOTATION, "") == reservation_mark(config)


def reservation_mark(config: NodeNetworkConfig) -> str:
    """The value of the annotation that says that what the object shows now is reserved."""
    return " ".join(sorted(f"{each.id}@{each.version}" for each in config.status.network_containers))


def marked_reserved(config: NodeNetworkConfig) -> NodeNetworkConfig:
    """The object with that annotation."""
    return _annotated(config, {RESERVED_ANNOTATION: reservation_mark(config)})


def with_former(config: NodeNetworkConfig) -> NodeNetworkConfig:
    """The object with the annotation that has its request and status as they are now."""
    former = FormerConfig(config.spec, config.status)
    return _annotated(config, {BEFORE_ANNOTATION: msgspec.json.encode(former).decode()})


def former_in(config: NodeNetworkConfig) -> FormerConfig | None:
    """What that annotation has; None where there is none. InvalidInput where it cannot be read."""
    written = config.metadata.annotations.get(BEFORE_ANNOTATION, "")
    if not written:
        return None
    try:
        return decode_json(written.encode(), FormerConfig)
    except UnreadableJson as error:
        raise InvalidInput(
            f"annotation {BEFORE_ANNOTATION} of NodeNetworkConfig {config.key} cannot be read ({error}): "
            "what the node had before podtide is not known"
        ) from error


def without_marks(config: NodeNetworkConfig) -> NodeNetworkConfig:
    """The object without any annotation of podtide's, those of its agents included."""
    annotations = config.metadata.annotations
    kept = {key: value for key, value in annotations.items() if not key.startswith(_OWN_PREFIX)}
    return structs.replace(config, metadata=structs.replace(config.metadata, annotations=kept))


def _annotated(config: NodeNetworkConfig, marks: dict[str, str]) -> NodeNetworkConfig:
    annotations = {**config.metadata.annotations, **marks}
    return structs.replace(config, metadata=structs.replace(config.metadata, annotations=annotations))
