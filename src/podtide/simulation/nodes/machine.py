"""A node's machine: what outlives the programs on it, and the programs."""

from podtide.agent.program import NodeAgent
from podtide.agent.request.sizing_policy import RequestPolicy
from podtide.core.machine_identity import MachineIdentity
from podtide.core.pool.states import State
from podtide.resources.node import NodeSystemInfo
from podtide.runtime.disk import Disk
from podtide.runtime.settings import Settings
from podtide.simulation.full_names import full_name
from podtide.simulation.nodes.container_runtime import ContainerRuntime
from podtide.simulation.nodes.kubelet import Kubelet


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
        self.past_version: int | None = None
        """If its Node was gone, and is back in a cluster that went back: the version of its container that came back with it."""
        self.named: set[str] = set()
        """Every name that agents of this node wrote as to be released."""

    @property
    def knowing_agent(self) -> NodeAgent | None:
        """The agent, if it has been told what is its own as the Node that the machine is: what else it has, nobody is given.

        What was a Node's that was gone and is back is in quarantine, until it is granted anew; and what pods kept and is
        not granted stays there, as that of a former Node does.
        """
        agent = self.agent
        if agent is None or not agent.synced.is_set() or agent.is_in_doubt or agent.node_uid != self.uid:
            return None
        return agent if self.past_version is None or self._is_granted_anew(agent, self.past_version) else None

    def _is_granted_anew(self, agent: NodeAgent, past: int) -> bool:
        pool = agent.pool
        versions = [pool.version(id_) for id_ in pool.containers() if id_.startswith(self.uid)]
        is_kept = any(address.state is State.ORPHANED for address in pool.addresses())
        return bool(versions) and min(versions) > past and not is_kept

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
