"""What was in force when a controller starts, read off what an earlier one wrote.

Without it a restart would forget an exhaustion that holds between the thresholds, and give every node a large batch in
a subnet that is nearly full.
"""

from collections.abc import Iterable
from fractions import Fraction

from podtide.core.batching import Batching, Standing, depth_of
from podtide.core.exact import exact
from podtide.core.scaler import EXHAUSTED_BATCH, STARVED_BUFFER, SubnetScaler
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.node_network_config import NodeNetworkConfig


def scaler_shown(subnet: ClusterSubnet | None, configured: Batching) -> SubnetScaler | None:
    """What a ClusterSubnet says is in force. Its buffer is a decimal: where that is the configured one's, that is meant."""
    if subnet is None or subnet.status.scaler is None:
        return None
    shown = subnet.status.scaler
    buffer = configured.buffer if shown.buffer == float(configured.buffer) else exact(shown.buffer)
    return SubnetScaler(shown.batch, buffer)


def configured_before(subnet: ClusterSubnet | None, default: Batching) -> Batching:
    """What stays where an override is refused that this controller never saw otherwise: what is in force."""
    shown = scaler_shown(subnet, default)
    if subnet is None or shown is None or subnet.status.exhausted or subnet.status.starved:
        return default
    return Batching(shown.batch, shown.buffer, default.thresholds, default.dwell_seconds)


def standing_of_subnet(subnet: ClusterSubnet | None, configured: Batching, now: float) -> Standing | None:
    """Where the subnet stands by its ClusterSubnet; None when that says nothing yet."""
    shown = scaler_shown(subnet, configured)
    if subnet is None or shown is None:
        return None
    return Standing(
        exhausted=subnet.status.exhausted,
        starved=subnet.status.starved,
        depth=depth_of(shown, configured),
        since=now,
    )


def standing_of_nodes(
    name: str,
    state: ClusterSubnetState | None,
    configs: Iterable[NodeNetworkConfig],
    configured: Batching,
    now: float,
) -> Standing:
    """Where the subnet stands by its ClusterSubnetState and by what its nodes were told last: the least of that."""
    told = [
        SubnetScaler(scaler.batch_size, Fraction(scaler.request_threshold_percent, 100))
        for config in configs
        if (scaler := config.status.scaler).batch_size > 0
        and config.status.network_containers
        and config.status.network_containers[0].subnet_name == name
    ]
    least = min(told, key=lambda scaler: (scaler.batch, scaler.buffer), default=None)
    starved = least == SubnetScaler(EXHAUSTED_BATCH, STARVED_BUFFER) and configured.buffer > STARVED_BUFFER
    return Standing(
        exhausted=state is not None and state.status is not None and state.status.exhausted,
        starved=starved,
        depth=0 if least is None else depth_of(least, configured),
        since=now,
    )
