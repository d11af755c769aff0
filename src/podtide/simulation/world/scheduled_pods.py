"""A world whose pods come without a node: it has a scheduler, a policy that makes pods request an address, and their owner."""

from podtide.simulation.full_names import full_name
from podtide.simulation.scheduling.address_policy import AddressPolicy, PolicyReach
from podtide.simulation.scheduling.pod_owner import PodOwner
from podtide.simulation.scheduling.pod_scheduler import NodeChoice, PodScheduler
from podtide.simulation.world.world import World


def start_scheduler(
    world: World, reach: PolicyReach = PolicyReach.ALL, choice: NodeChoice = NodeChoice.SPREAD
) -> PodScheduler:
    """Start it. Pods are created without a node from then on, and kubelets that start later check what pods request."""
    world.workload.policy = AddressPolicy(reach)
    program, owner = world.scheduler_program, full_name(world.name, "owner")
    line = world.record_cluster(program)
    world.scheduler = PodScheduler(
        world.wrappers.cluster(program, line),
        choice=choice,
        runtime=world.runtime_of("scheduler", program),
    )
    world.programs.start(program, world.scheduler.run(), line)
    replacing = PodOwner(world.cluster, world.workload.replace_pod, runtime=world.runtime_of("owner", owner))
    world.programs.start(owner, replacing.run())
    return world.scheduler
