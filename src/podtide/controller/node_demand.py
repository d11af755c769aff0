"""What is known of a node's demand: by its statement, or by its request where it states none."""

from msgspec import structs

from podtide.allocator.limits import MOST_WANTED
from podtide.core.subnet.scaler import effective_scaler
from podtide.core.subnet.statement import StatedDemand, inferred_demand, stated_demand
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.statement_annotation import statement_in


def known_demand(config: NodeNetworkConfig, most: int, *, of_two: bool) -> tuple[StatedDemand, int]:
    """The demand that the node states, with the statement's number; else what follows from its request.

    `of_two` says that the node has containers in two subnets.
    """
    request = config.spec.requested_ip_count
    statement = statement_in(config.metadata.annotations, request)
    if statement is not None and max(statement.max_ips, statement.demand) <= MOST_WANTED:
        return stated_demand(statement, of_two=of_two), statement.number
    shown = config.status.scaler.stated
    by = effective_scaler(structs.replace(shown, max_ips=min(shown.max_ips or most, most)), None)
    return inferred_demand(request, by, of_two=of_two), 0
