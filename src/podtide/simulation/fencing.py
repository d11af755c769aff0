"""What DESIGN.md asks of the people who run a cluster: a pod that still has an address of a removed Node must go.

Its machine lived on while the Node was deleted and made again. The address rests in quarantine, and then somebody else
gets it; the agent cannot end the pod, so somebody has to, before that.
"""

import asyncio
from typing import NoReturn

from podtide.cluster.port import NotFound
from podtide.controller.placing import node_uid
from podtide.simulation.machine import Machine
from podtide.simulation.world import World

_EVERY_SECONDS = 120.0


async def keep_fencing(world: World) -> NoReturn:
    """Remove such pods, again and again."""
    while True:
        await asyncio.sleep(_EVERY_SECONDS)
        for machine in tuple(world.machines.values()):
            for pod in await left_by_another_node(world, machine):
                try:
                    await world.workload.remove_pod(pod.partition("/")[2])
                except NotFound:
                    continue


async def left_by_another_node(world: World, machine: Machine) -> list[str]:
    """Pods that have addresses which are not of the Node that the machine is, if it is any."""
    containers = (await world.allocator.list_containers(node=machine.name)).items
    own = {
        address.ip
        for container in containers
        if node_uid(container.id) == machine.uid
        for address in container.addresses
    }
    return [sandbox.pod for sandbox in machine.kubelet.sandboxes() if not own.issuperset(sandbox.addresses)]
