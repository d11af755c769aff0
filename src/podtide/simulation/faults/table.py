"""All faults, by name."""

from podtide.core.errors import InvalidInput
from podtide.simulation.faults.answers import (
    ConflictAnswer,
    LostAnswer,
    ServerError,
    StaleList,
    ThrottledAnswer,
)
from podtide.simulation.faults.controllers import CutOffLeader, SecondCluster, StalledLeader
from podtide.simulation.faults.disks import DiskFailure, JournalDamaged, JournalLost
from podtide.simulation.faults.edits import (
    ClusterSubnetDeleted,
    ClusterSubnetMade,
    ConfigDeleted,
    DefinitionRecreated,
    ForeignNames,
    RequestEdited,
    StatusRestored,
)
from podtide.simulation.faults.kubelet_calls import ForgottenDelete, LateAdd, LateDelete, RepeatedCall
from podtide.simulation.faults.line_fault import LineFault
from podtide.simulation.faults.machines import (
    ClockJump,
    MachineReplaced,
    NodeRecreated,
    NodeRenamed,
    PowerLoss,
)
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.placement import (
    ControllersAway,
    KubeletRestarted,
    NodeDrained,
    PolicyRemoved,
    ResourcesEdited,
    StaleCapacities,
)
from podtide.simulation.faults.plugin_fault import PluginFault
from podtide.simulation.faults.pods import PodEvicted, PodForceDeleted, PodReplaced, SandboxDied
from podtide.simulation.faults.programs import AgentCrash, ControllerCrash, Partition
from podtide.simulation.faults.requests import Delay, Duplicate, LateCreate, LostRequest
from podtide.simulation.faults.stores import (
    AllocatorRestart,
    AllocatorRestored,
    CollectorDown,
    EtcdRestored,
    ReplicaKilled,
)
from podtide.simulation.faults.subnets import Override, SubnetGrown, SubnetShrunk
from podtide.simulation.faults.watches import DeafAgent, DroppedWatch, GoneWatch, LateWatch, OneWatchAlone

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
        StaleCapacities(),
        ControllersAway(),
        PolicyRemoved(),
        NodeDrained(),
        KubeletRestarted(),
        ResourcesEdited(),
        DeafAgent(),
        ReplicaKilled(),
    )
}
ALL = "all"
NONE = "none"


def _is_only_by_name(fault: Fault) -> bool:
    return isinstance(fault, Mishap) and fault.only_by_name


def chosen_faults(words: str) -> frozenset[str]:
    """The names of the faults that `all`, `none` or a comma-separated list stands for."""
    if words == ALL:
        return frozenset(name for name, fault in FAULTS.items() if not _is_only_by_name(fault))
    names = frozenset() if words == NONE else frozenset(name.strip() for name in words.split(","))
    for name in sorted(names - FAULTS.keys()):
        raise InvalidInput(f"there is no fault {name!r}: give all, none, or some of {', '.join(FAULTS)}")
    return names
