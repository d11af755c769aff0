"""What addresses are requested and handed out by, on one node."""

from msgspec import Struct

from podtide.agent.pool.journaled_pool import JournaledPool
from podtide.agent.request.config_follower import ConfigFollower
from podtide.agent.request.readiness import Readiness
from podtide.agent.request.subnets import NodeSubnets


class NodeInputs(Struct, frozen=True, kw_only=True, eq=False):
    """The node's pool, its NodeNetworkConfig, the subnets of that, and whether all of it is known."""

    journaled: JournaledPool
    follower: ConfigFollower
    subnets: NodeSubnets
    readiness: Readiness
