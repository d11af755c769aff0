"""Leak repair as a part of the controller: it runs while the controller leads, unless secondary networks are off."""

import json

import pytest
from msgspec.structs import replace

from controller.repair.world import GRACE, entry_for
from controller.world import OPTIONS, World, a_world, moment
from podtide.controller.metrics import ControllerMetrics
from podtide.controller.options import NetworkOptions
from podtide.core.errors import InvalidInput
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool, IPPoolSpec
from podtide.resources.network_attachment import NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec
from podtide.runtime.settings import Settings

INTERVAL = Settings().repair_interval_seconds


async def add_a_leak(world: World) -> None:
    ipam = {"type": "podtide", "range": "10.0.0.0/24", "enable_overlapping_ranges": False}
    definition = NetworkAttachmentDefinition(
        metadata=ObjectMeta(name="plain", namespace="default"),
        spec=NetworkAttachmentDefinitionSpec(config=json.dumps({"name": "plain", "ipam": ipam})),
    )
    await world.cluster.create(definition, manager="test")
    place = ObjectMeta(name="10.0.0.0-24", namespace="nets")
    spec = IPPoolSpec(range="10.0.0.0/24", allocations={"1": entry_for("ns/gone")})
    await world.cluster.create(IPPool(metadata=place, spec=spec), manager="test")


async def leaked(world: World) -> int:
    return len((await world.cluster.get(IPPool, "10.0.0.0-24", "nets")).spec.allocations)


async def test_a_controller_that_leads_repairs_and_counts_what_it_did() -> None:
    async with a_world() as world:
        await add_a_leak(world)
        replica = world.replica(replace(OPTIONS, networks=NetworkOptions(namespace="nets")))
        replica.start()
        await moment(GRACE + 10)
        assert await leaked(world) == 0
        shown = ControllerMetrics(replica.controller.metrics).render().decode()
        assert 'podtide_controller_repairs_total{what="allocation-released"} 1.0' in shown
        assert "podtide_controller_repair_looks_total 3.0" in shown
        assert "podtide_controller_repair_suspects 1.0" in shown  # found once more, and released


async def test_without_secondary_networks_nothing_is_looked_at() -> None:
    async with a_world() as world:
        await add_a_leak(world)
        replica = world.replica(
            replace(OPTIONS, networks=NetworkOptions(namespace="nets"), secondary_networks=False)
        )
        replica.start()
        await moment(3 * INTERVAL)
        assert await leaked(world) == 1
        assert replica.controller.metrics.repair.looks == 0


def test_a_schedule_that_is_none_is_refused_before_anything_runs() -> None:
    with pytest.raises(InvalidInput, match="'nightly' is not a cron expression"):
        NetworkOptions(repair_schedule="nightly")
