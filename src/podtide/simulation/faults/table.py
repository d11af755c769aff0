"""All faults there are, by name."""

from podtide.core.errors import InvalidInput
from podtide.simulation.faults.allocator_restart import AllocatorRestart
from podtide.simulation.faults.allocator_restored import AllocatorRestored
from podtide.simulation.faults.clock_jump import ClockJump
from podtide.simulation.faults.collector_down import CollectorDown
from podtide.simulation.faults.crashes import AgentCrash, ControllerCrash
from podtide.simulation.faults.definitions import DefinitionRecreated
from podtide.simulation.faults.delay import Delay
from podtide.simulation.faults.disk_failure import DiskFailure
from podtide.simulation.faults.duplicate import Duplicate
from podtide.simulation.faults.edits import (
    ClusterSubnetDeleted,
    ClusterSubnetMade,
    ConfigDeleted,
    ForeignNames,
    RequestEdited,
)
from podtide.simulation.faults.etcd_restored import EtcdRestored
from podtide.simulation.faults.journals import JournalDamaged, JournalLost
from podtide.simulation.faults.kubelet_calls import ForgottenDelete, LateAdd, LateDelete, RepeatedCall
from podtide.simulation.faults.late_create import LateCreate
from podtide.simulation.faults.line_fault import LineFault
from podtide.simulation.faults.lost_answer import LostAnswer
from podtide.simulation.faults.lost_request import LostRequest
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.nodes import MachineReplaced, NodeRecreated, NodeRenamed
from podtide.simulation.faults.one_watch import OneWatchAlone
from podtide.simulation.faults.overrides import Override
from podtide.simulation.faults.partition import Partition
from podtide.simulation.faults.plugin_fault import PluginFault
from podtide.simulation.faults.pods import PodEvicted, PodForceDeleted, PodReplaced, SandboxDied
from podtide.simulation.faults.power_loss import PowerLoss
from podtide.simulation.faults.refusals import ConflictAnswer, ServerError, ThrottledAnswer
from podtide.simulation.faults.second_cluster import SecondCluster
from podtide.simulation.faults.stale_list import StaleList
from podtide.simulation.faults.status_restored import StatusRestored
from podtide.simulation.faults.subnet_grown import SubnetGrown
from podtide.simulation.faults.subnet_shrunk import SubnetShrunk
from podtide.simulation.faults.two_leaders import CutOffLeader, StalledLeader
from podtide.simulation.faults.watches import DroppedWatch, GoneWatch, LateWatch

Fault = LineFault | PluginFault | Mishap

FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        LostRequest(),
        LostAnswer(),
        Delay(),
        Duplicate(),
        LateCreate(),
        ConflictAnswer(),
        ThrottledAnswer(),
        ServerError(),
        GoneWatch(),
        DroppedWatch(),
        LateWatch(),
        StaleList(),
        RepeatedCall(),
        ForgottenDelete(),
        LateAdd(),
        LateDelete(),
        AgentCrash(),
        ControllerCrash(),
        PowerLoss(),
        Partition(),
        JournalLost(),
        JournalDamaged(),
        DiskFailure(),
        StalledLeader(),
        CutOffLeader(),
        ClockJump(),
        NodeRecreated(),
        MachineReplaced(),
        NodeRenamed(),
        PodEvicted(),
        PodForceDeleted(),
        PodReplaced(),
        SandboxDied(),
        CollectorDown(),
        AllocatorRestart(),
        AllocatorRestored(),
        SecondCluster(),
        SubnetGrown(),
        SubnetShrunk(),
        RequestEdited(),
        ForeignNames(),
        StatusRestored(),
        ConfigDeleted(),
        ClusterSubnetDeleted(),
        ClusterSubnetMade(),
        Override(),
        DefinitionRecreated(),
        EtcdRestored(),
        OneWatchAlone(),
    )
}
ALL = "all"
NONE = "none"


def chosen_faults(words: str) -> frozenset[str]:
    """The names that `all`, `none` or a list with commas stands for."""
    if words == ALL:
        return frozenset(FAULTS)
    names = frozenset() if words == NONE else frozenset(name.strip() for name in words.split(","))
    for name in sorted(names - FAULTS.keys()):
        raise InvalidInput(f"there is no fault {name!r}: give all, none, or some of {', '.join(FAULTS)}")
    return names
