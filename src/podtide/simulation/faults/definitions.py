"""Definitions of secondary networks that go, and come again."""

from contextlib import suppress
from random import Random

from podtide.cluster.port import AlreadyExists, NotFound
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import Scene
from podtide.simulation.nodes.network_definitions import Definition
from podtide.simulation.nodes.pods import MANAGER, NAMESPACE

_LONGEST_ABSENCE_SECONDS = 30.0


class DefinitionRecreated(Mishap):
    """Somebody deletes a NetworkAttachmentDefinition, and applies it again later, as a deployment tool does.

    Pods keep what they have of the network, and runtimes go on calling for it: they were told of it before.
    """

    name = "definition-recreated"
    every_seconds = 90.0
    of_networks = True

    async def happen(self, scene: Scene, chance: Random) -> str:
        """Delete it, and make it again later."""
        world = scene.world
        if not world.networks:
            return ""
        definition = chance.choice(world.networks)
        try:
            await world.cluster.delete(NetworkAttachmentDefinition, definition.name, NAMESPACE)
        except NotFound:
            return ""  # it is away already

        apply_again(scene, definition, chance)
        return definition.name


def apply_again(scene: Scene, definition: Definition, chance: Random) -> None:
    """Somebody applies the definition some time from now, whether or not it is there by then."""

    async def apply() -> None:
        with suppress(AlreadyExists):
            await scene.world.cluster.create(definition.attachment(), manager=MANAGER)

    scene.plan(chance.uniform(0.0, _LONGEST_ABSENCE_SECONDS), apply)
