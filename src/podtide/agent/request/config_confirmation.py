"""The question whether a NodeNetworkConfig that was gone is of the present, as the agent writes it (`resources.config_confirmation`).

It is a server-side apply by the manager of the request, so it has to state all that the agent states in the object: the
request and its annotations as they are there, and what the node gave up by its own records. The next request that the
agent writes leaves the question out, which costs no write of its own.
"""

from podtide.agent.pool.journaled_pool import JournaledPool
from podtide.resources.base import ObjectMeta
from podtide.resources.metadata_keys import DOUBT_ANNOTATION, STATEMENT_ANNOTATION, WAITING_PODS_ANNOTATION
from podtide.resources.node_network_config import NodeNetworkConfig, NodeNetworkConfigSpec

_STATED = (WAITING_PODS_ANNOTATION, STATEMENT_ANNOTATION)


def question(config: NodeNetworkConfig, journaled: JournaledPool) -> NodeNetworkConfig:
    """What to apply. With uid and version: the object that is asked about, and no other."""
    pool, there = journaled.pool, config.metadata
    stated = {mark: there.annotations[mark] for mark in _STATED if mark in there.annotations}
    names = sorted(name for container_id in pool.containers() for name in pool.named(container_id))
    return NodeNetworkConfig(
        metadata=ObjectMeta(
            name=there.name,
            namespace=there.namespace,
            uid=there.uid,
            resource_version=there.resource_version,
            annotations={**stated, DOUBT_ANNOTATION: journaled.doubt},
        ),
        spec=NodeNetworkConfigSpec(requested_ip_count=config.spec.requested_ip_count, ips_not_in_use=names),
    )
