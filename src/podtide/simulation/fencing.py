"""What DESIGN.md asks of the people who run a cluster: a pod that still has an address of a removed Node must go.

Its machine lived on while the Node was deleted and made again. The address rests in quarantine, and then somebody else
gets it; the agent cannot end the pod, so somebody has to, before that.
"""

import asyncio
from typing import NoReturn

from podtide.cluster.port import NotFound
from podtide.simulation.machine import Machine
from podtide.simulation.world import World

_EVERY_SECONDS = 60.0


async def keep_fencing(world: World) -> NoReturn:
    """Remove such pods, again and again."""
    while True:
        await asyncio.sleep(_EVERY_SECONDS)
        for machine in tuple(world.machines.values()):
            for pod in _to_fence(machine):
                try:
                    await world.workload.remove_pod(pod)
                except NotFound:
                    continue


def _to_fence(machine: Machine) -> list[str]:
    """Names of pods that have addresses of another Node than the machine is."""
    agent = machine.agent
    if agent is None:
        return []
    foreign = {
        address.ip
        for address in agent.addresses.all_addresses()
        if not machine.uid or not address.container.startswith(machine.uid)
    }
    return [
        sandbox.pod.partition("/")[2]
        for sandbox in machine.kubelet.sandboxes()
        if not foreign.isdisjoint(sandbox.addresses)
    ]
