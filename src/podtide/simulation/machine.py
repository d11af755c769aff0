"""A node's machine: what outlives the programs on it, and the programs."""

from podtide.agent.policy import RequestPolicy
from podtide.agent.program import NodeAgent
from podtide.core.address_states import State
from podtide.core.machine_identity import MachineIdentity
from podtide.resources.node import NodeSystemInfo
from podtide.runtime.disk import Disk
from podtide.runtime.settings import Settings
from podtide.simulation.container_runtime import ContainerRuntime
from podtide.simulation.full_names import full_name
from podtide.simulation.kubelet import Kubelet


class Machine:
    """One machine. Its programs are started and ended by the world."""

    agent: NodeAgent | None = None
    """None while none runs."""

    def __init__(  # noqa: PLR0913 - a machine is the sum of its parts
        self,
        name: str,
        uid: str,
        disk: Disk,
        runtime: ContainerRuntime,
        kubelet: Kubelet,
        *,
        settings: Settings,
        policy: RequestPolicy,
        identity: MachineIdentity,
        cluster: str = "",
    ) -> None:
        self.name = name
        self.cluster = cluster
        """Whose machine it is; "" where there is but one cluster."""
        self.full_name = full_name(cluster, name)
        self.uid = uid
        """Of the Node that the machine is."""
        self.identity = identity
        """Which machine it is, and which boot of it."""
        self.disk = disk
        self.runtime = runtime
        self.kubelet = kubelet
        self.settings = settings
        self.policy = policy
        self.is_back = False
        """Whether its Node was gone, and is back in a cluster that went back."""
        self.named: set[str] = set()
        """Every name that agents of this node wrote as to be released."""

    @property
    def knowing_agent(self) -> NodeAgent | None:
        """The agent, if it has been told what is its own as the Node that the machine is: what else it has, nobody is given.

        What pods kept of a Node that was gone and is back may be in quarantine, as that of a former Node is.
        """
        agent = self.agent
        if agent is None or not agent.synced.is_set() or agent.is_in_doubt or agent.node_uid != self.uid:
            return None
        if self.is_back and any(address.state is State.ORPHANED for address in agent.pool.addresses()):
            return None
        return agent

    @property
    def agent_program(self) -> str:
        """What its agent is called in the trace and in the log."""
        return f"agent {self.full_name}"

    @property
    def kubelet_program(self) -> str:
        """What its kubelet is called in the trace and in the log."""
        return f"kubelet {self.full_name}"


def node_info(machine: MachineIdentity) -> NodeSystemInfo:
    """What the machine's kubelet states of it."""
    return NodeSystemInfo(
        machine_id=machine.machine_id, system_uuid=machine.system_uuid, boot_id=machine.boot_id
    )
