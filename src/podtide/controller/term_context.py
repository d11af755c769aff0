"""What the parts of a controller share during one term: what they may act on, and what they run in."""

from msgspec import Struct

from podtide.cluster.informer import Informer
from podtide.cluster.port import Cluster
from podtide.cluster.work_queue import WorkQueue
from podtide.controller.allocator_outage import AllocatorOutage
from podtide.controller.counts import ControllerCounts
from podtide.controller.events import EventRecorder
from podtide.controller.fencing import GuardedAllocator, GuardedWrites
from podtide.controller.options import ControllerOptions
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger
from podtide.runtime.settings import Settings


class TermContext(Struct, frozen=True, kw_only=True):
    """What every part of the controller is given for one term."""

    cluster: Cluster
    """For fresh reads. Writes go through `writes`."""
    nodes: Informer[Node]
    configs: Informer[NodeNetworkConfig]
    node_queue: WorkQueue[str]
    """The names of nodes to reconcile."""
    writes: GuardedWrites
    allocator: GuardedAllocator
    outage: AllocatorOutage
    events: EventRecorder
    options: ControllerOptions
    settings: Settings
    counts: ControllerCounts
    clock: Clock
    log: Logger
