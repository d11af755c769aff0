"""Which batch is in force, by what nodes state and people ask for, in one cluster and in two."""

from fractions import Fraction

from msgspec import structs

from cluster.faulty_cluster import Script
from controller.world import OPTIONS, World, a_world, condition, crowd, in_force, moment, override
from podtide.allocator.errors import AllocatorUnavailable, InForceConflict
from podtide.core.subnet.statement import StatedDemand, Statement
from podtide.resources.cluster_subnet import ClusterSubnet, ThresholdsInForce, ThresholdsOverride
from podtide.resources.metadata_keys import STATEMENT_ANNOTATION, SYSTEM_NAMESPACE
from podtide.resources.statement_annotation import render


async def test_the_batch_goes_down_in_one_step_waits_for_answers_and_comes_back() -> None:
    async with a_world() as world:
        world.replica().start()
        names = await crowd(world, demand=1)
        assert await in_force(world) == (16, 0.5)
        for name in names:
            await world.state(name, 15)
        await moment(10)
        assert await in_force(world) == (8, 0.5)
        status = (await world.cluster_subnet()).status
        assert status.scaler is not None
        assert (status.exhausted, status.scaler.top) == (True, 16)
        short = condition(await world.cluster_subnet(), "BatchAsConfigured")
        assert (short.status, short.reason) == ("False", "SubnetShort")
        assert short.message.startswith(
            "batch 8, buffer 0.5 is in force, and batch up to 16, buffer 0.5 was asked for"
        )

        await moment(40)
        assert await in_force(world) == (8, 0.5), "nobody has answered, and R is still that of batch 16"
        for name in names:
            await world.state(name, 15, batch=8)
        await moment(120)
        assert await in_force(world) == (8, 0.5)
        assert not (await world.cluster_subnet()).status.exhausted
        for name in names:
            await world.state(name, 1, batch=8)
        await moment(10)
        assert await in_force(world) == (16, 0.5)
        assert condition(await world.cluster_subnet(), "BatchAsConfigured").reason == "AsConfigured"
        reasons = await world.events(await world.cluster_subnet())
        assert sorted(reasons) == ["BatchRaised", "BatchReduced", "Exhausted", "Recovered"]


async def test_an_override_that_cannot_be_in_force_is_accepted_and_said_to_wait_until_it_fits() -> None:
    async with a_world() as world:
        world.replica().start()
        names = await crowd(world, demand=21)
        await moment(120)  # nobody gives anything back: by the windows of batch 16 only a smaller one fits
        for name in names:
            await world.state(name, 21, batch=8)
        await moment(120)
        for name in names:
            await world.state(name, 21, batch=4)
        await moment(120)
        assert await in_force(world) == (4, 0.5)
        await override(world, batch=8)
        await moment(120)
        assert await in_force(world) == (4, 0.5), "by 8 the nodes would take 8·32 of 253"
        shown = await world.cluster_subnet()
        assert condition(shown, "OverrideAccepted").message == "asked for: batch up to 8, buffer 0.5"
        short = condition(shown, "BatchAsConfigured")
        assert (short.status, short.reason) == ("False", "SubnetShort")
        assert short.message.startswith(
            "batch 4, buffer 0.5 is in force, and batch up to 8, buffer 0.5 was asked for: no larger batch is known to fit"
        )
        for name in names:
            await world.state(name, 3, batch=4, top=8)
        await moment(10)
        assert await in_force(world) == (8, 0.5)
        assert condition(await world.cluster_subnet(), "BatchAsConfigured").reason == "AsConfigured"


async def test_the_thresholds_in_force_are_shown_whoever_asked_for_them() -> None:
    async with a_world() as world:
        world.replica().start()
        await crowd(world, demand=3)
        await moment(10)
        shown = (await world.cluster_subnet()).status.thresholds
        assert shown == ThresholdsInForce(lower=0.8, upper=0.9)
        await override(world, thresholds=ThresholdsOverride(lower=0.5, upper=0.7))
        await moment(10)
        shown = (await world.cluster_subnet()).status.thresholds
        assert shown == ThresholdsInForce(lower=0.5, upper=0.7)


async def test_a_statement_reaches_the_allocator_with_its_request() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_node("n1")
        await moment()
        assert world.allocator.wishes[-1].stated == StatedDemand()
        await world.state("n1", 15, batch=8)
        await moment()
        stated = world.allocator.wishes[-1].stated
        assert stated == StatedDemand(low=13, high=20, demand=15, batch=8, buffer="0.5")
        await world.ask("n1", 31)  # an edit by hand, which leaves the statement of another request beside it
        await moment()
        stated = world.allocator.wishes[-1].stated
        assert stated is not None
        assert (stated.demand, stated.batch, stated.primaries) == (None, 16, 0)


async def test_a_statement_that_no_node_can_mean_keeps_nobody_from_its_addresses() -> None:
    async with a_world() as world:
        world.replica().start()
        await world.add_node("n1")
        await moment()
        config = await world.config("n1")
        statement = Statement(
            demand=3,
            batch=16,
            buffer=Fraction(1, 2),
            max_ips=10**9,
            primaries=1,
            request=15,
            number=1,
            top=10**9,
        )
        place = structs.replace(config.metadata, annotations={STATEMENT_ANNOTATION: render(statement)})
        spec = structs.replace(config.spec, requested_ip_count=15)
        await world.cluster.replace(structs.replace(config, metadata=place, spec=spec), manager="kubectl")
        await moment()
        assert len(await world.names("n1")) == 15


async def test_what_is_in_force_survives_every_controller_and_its_objects() -> None:
    async with a_world() as world:
        first = world.replica()
        first.start()
        await crowd(world)
        await first.stop()
        await world.cluster.delete(ClusterSubnet, "pods", SYSTEM_NAMESPACE)
        world.replica(name="b").start()
        await moment()
        assert await in_force(world) == (8, 0.5)


async def test_two_clusters_of_a_subnet_tell_the_same_batch_whoever_decides() -> None:
    async with a_world() as world:
        west_options = structs.replace(OPTIONS, cluster="west")
        west = World(world.allocator, seed=2)
        try:
            world.replica().start()
            west.replica(west_options, name="w").start()
            for number in range(4):
                await world.add_node(f"e{number}")
                await west.add_node(f"w{number}")
            await moment()
            for number in range(4):
                await world.state(f"e{number}", 15)
                await west.state(f"w{number}", 15)
            await moment(10)
            assert (await in_force(world), await in_force(west)) == ((8, 0.5), (8, 0.5))
            assert world.allocator.calls["put_in_force"] <= 5
            for side in (world, west):
                assert sorted(await side.events(await side.cluster_subnet())) == ["BatchReduced", "Exhausted"]

            await override(west, batch=4)
            await moment(10)
            assert (await in_force(world), await in_force(west)) == ((4, 0.5), (4, 0.5))
            for number in range(4):
                await world.state(f"e{number}", 1, batch=4, top=4)
                await west.state(f"w{number}", 1, batch=4, top=4)
            await moment(10)
            told = condition(await world.cluster_subnet(), "BatchAsConfigured")
            assert (told.status, told.reason) == ("False", "AnotherCluster")
            assert "west (batch up to 4, buffer 0.5)" in told.message
            assert condition(await west.cluster_subnet(), "BatchAsConfigured").reason == "AsConfigured"

            for number in range(4):
                await west.remove_node(f"w{number}")
            await moment(400)  # until their addresses are out of quarantine
            seen = [await in_force(world)]
            for _ in range(20):
                await moment(7)
                seen.append(await in_force(world))
            assert set(seen) == {(16, 0.5)}, "what a cluster without nodes here asks for counts for nobody"
            await override(world, buffer=0.25)
            await moment(10)
            assert await in_force(world) == (16, 0.25)
            assert (await world.events(await world.cluster_subnet()))[-1] == "BatchConfigured"
        finally:
            await west.stop()


async def test_a_decision_that_another_cluster_overtook_is_not_made() -> None:
    async with a_world() as world:
        world.replica().start()
        await moment()
        world.allocator.faults = Script(put_in_force=[InForceConflict("west decided")])
        await override(world, batch=8)
        await moment(10)
        assert await in_force(world) == (8, 0.5)
        assert world.allocator.calls["put_in_force"] == 3, "at the start, in vain, and anew"


async def test_a_lost_answer_to_a_decision_costs_nothing() -> None:
    async with a_world() as world:
        world.replica().start()
        await moment()
        world.allocator.faults = Script(put_in_force=[None, AllocatorUnavailable("lost")])
        await override(world, batch=8)
        await moment(20)
        assert await in_force(world) == (8, 0.5)


async def test_starved_is_entered_when_no_batch_helps_and_left_when_everybody_can_keep_one() -> None:
    async with a_world("10.1.0.0/28") as world:  # 13 addresses
        world.replica().start()
        await world.add_node("n1")
        await world.add_node("n2")
        await moment()
        await world.state("n1", 10)
        await world.state("n2", 2)
        await moment(10)
        assert await in_force(world) == (2, 0.5), "by what is known, 13 could be enough"
        await world.state("n1", 10, batch=2)
        await world.state("n2", 2, batch=2)
        await moment(6)
        status = (await world.cluster_subnet()).status
        assert (status.exhausted, status.starved) == (True, True), "16 are needed where each keeps one"
        assert await in_force(world) == (1, 0.0)
        assert condition(await world.cluster_subnet(), "BatchAsConfigured").reason == "Starved"
        await world.state("n1", 8, batch=1, buffer=Fraction(0))
        await moment()
        await world.state("n2", 2, batch=1, buffer=Fraction(0))
        await moment(130)
        assert len(await world.names("n2")) == 2
        assert (await world.cluster_subnet()).status.starved, "nobody is owed, but not everybody can keep one"
        await world.state("n1", 7, batch=1, buffer=Fraction(0))
        await moment(10)
        assert not (await world.cluster_subnet()).status.starved
        assert await in_force(world) == (1, 0.5)
        reasons = await world.events(await world.cluster_subnet())
        assert [reason for reason in reasons if reason in {"Starved", "Fed"}] == ["Starved", "Fed"]
