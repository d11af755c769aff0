"""The options of a controller: which cluster it acts for, and in which subnets nodes get their addresses."""

from msgspec import Struct

from podtide.allocator.limits import check_names
from podtide.controller.repair_schedule import check_expression
from podtide.core.errors import InvalidInput
from podtide.core.subnet.batch import BatchRule, decide_batch
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.names import Naming, is_object_name


class NetworkOptions(Struct, frozen=True, kw_only=True):
    """Where the objects of secondary networks are, how they are named, and when they are searched for leaks."""

    namespace: str = SYSTEM_NAMESPACE
    naming: Naming = Naming.PODTIDE
    """Which program's rule the names of nodes' own pools follow. Pools under either name are found."""
    repair_schedule: str = ""
    """A cron expression, which takes precedence over those of configurations; "" for every `repair_interval`."""

    def __post_init__(self) -> None:
        if self.repair_schedule:
            check_expression(self.repair_schedule, "--repair-schedule")


class ControllerOptions(Struct, frozen=True, kw_only=True):
    """The cluster, its subnets and its secondary networks."""

    cluster: str
    """The name of this cluster at the allocator. Several clusters may share a subnet."""
    network: str
    subnet: str
    """For nodes without the label `podtide.io/subnet`."""
    subnet_v6: str = ""
    """For the second address of nodes without the label `podtide.io/subnet-v6`; "" for none."""
    cluster_subnets: bool = True
    """False where agents know no ClusterSubnet: the batch then reaches nodes by their NodeNetworkConfigs."""
    secondary_networks: bool = True
    """Whether to manage secondary networks too. Where the cluster does not know their kinds, there are none."""
    networks: NetworkOptions = NetworkOptions()
    placement: bool = False
    """Whether Nodes publish how many pods they have addresses for (see `controller.placement`)."""
    placement_taint: bool = False
    """Whether Nodes that can get no address are tainted, too: for clusters whose pods request none."""
    hold_removed_nodes: bool = False
    """Whether the addresses of a deleted node are held until its machine returns or reboots, or a person releases them."""
    batch_rule: BatchRule = decide_batch
    """Decides which batch is in force; simulations compare others with it."""

    def __post_init__(self) -> None:
        for name in ("cluster", "network", "subnet"):
            if not getattr(self, name):
                raise InvalidInput(f"the controller's {name} is empty: give its name at the allocator")
        check_names(cluster=self.cluster, network=self.network)
        for subnet in filter(None, (self.subnet, self.subnet_v6)):
            if not is_object_name(subnet):
                raise InvalidInput(
                    f"subnet {subnet!r} cannot be used by nodes: two objects are named after it, and a Kubernetes name has "
                    "lower-case letters, digits, '-' and '.' only; name a subnet whose name is valid"
                )
        if self.placement_taint and not self.placement:
            raise InvalidInput(
                "--placement-taint is given without --placement, of which it is a part: give both"
            )
        if self.subnet_v6 == self.subnet:
            raise InvalidInput(
                f"subnet {self.subnet} is given for both addresses of a node: name another subnet for the second"
            )
