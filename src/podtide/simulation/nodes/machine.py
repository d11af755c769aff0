"""A node's machine: its disk and its sandboxes, which outlive its programs, and the programs."""

from msgspec import Struct, field

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


class Machine(Struct, kw_only=True, eq=False):
    """One machine. The world starts and ends its programs."""

    name: str
    cluster: str = ""
    """The cluster's name; "" where there is only one."""
    uid: str
    """The uid of the machine's Node."""
    identity: MachineIdentity
    """The ids of the machine and of its present boot."""
    disk: Disk
    runtime: ContainerRuntime
    kubelet: Kubelet
    settings: Settings
    policy: RequestPolicy
    agent: NodeAgent | None = None
    """None while no agent runs."""
    past_version: int | None = None
    """If a restore of the cluster brought its deleted Node back: the version of the container that came back with the Node."""
    named: set[str] = field(default_factory=set)
    """Every name that this node's agents named for release."""

    @property
    def full_name(self) -> str:
        """Its name, with its cluster's where there are several."""
        return full_name(self.cluster, self.name)

    @property
    def knowing_agent(self) -> NodeAgent | None:
        """The agent, if it has synced as the machine's present Node; None otherwise: then its pool must not be audited.

        The addresses of a deleted Node that a restore brought back are in quarantine until they are granted again; those
        that pods kept and that are not granted stay there, like those of a former Node.
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
        """The agent's name in the trace and in the log."""
        return f"agent {self.full_name}"

    @property
    def kubelet_program(self) -> str:
        """The kubelet's name in the trace and in the log."""
        return f"kubelet {self.full_name}"


def node_info(machine: MachineIdentity) -> NodeSystemInfo:
    """The machine's ids as its kubelet writes them into the Node's status."""
    return NodeSystemInfo(
        machine_id=machine.machine_id, system_uuid=machine.system_uuid, boot_id=machine.boot_id
    )
