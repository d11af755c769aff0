from msgspec import structs

from agent.node_bench import Bench, owner
from cluster.faulty_cluster import Script
from podtide.cluster.port import NotFound, Unavailable
from podtide.core.pool.pool import Owner
from podtide.resources.pod import Pod, PodPhase

GRACE = 300.0


async def joined(faults: Script | None = None) -> Bench:
    bench = Bench(faults=faults)
    await bench.join()
    return bench


async def test_a_sandbox_whose_pod_is_gone_is_collected_after_the_grace_and_counted() -> None:
    bench = await joined()
    async with bench.controller(), bench.running() as agent:
        pod = await bench.schedule("pod")
        await bench.add("sandbox", pod)
        await bench.settle()
        await bench.remove(pod)
        await bench.settle(GRACE - 10)
        assert agent.addresses.state().demand == 1
        await bench.settle(20)
        assert agent.addresses.state().demand == 0
        assert agent.addresses.state().collected_leaks == 1
        [line] = bench.log("collected a leaked sandbox")
        assert (line["pod"], line["namespace"], line["sandbox"]) == ("pod", "default", "sandbox")


async def test_a_sandbox_whose_pod_ended_and_that_was_never_deleted_is_collected() -> None:
    bench = await joined()
    async with bench.controller(), bench.running() as agent:
        pod = await bench.schedule("job")
        await bench.add("sandbox", pod)
        await bench.report(pod, PodPhase.SUCCEEDED)
        await bench.settle(GRACE + 10)
        assert agent.addresses.state().collected_leaks == 1


async def test_a_sandbox_of_a_living_pod_is_never_collected() -> None:
    bench = await joined()
    async with bench.controller(), bench.running() as agent:
        pod = await bench.schedule("pod")
        await bench.add("sandbox", pod)
        await bench.settle(10 * GRACE)
        assert agent.addresses.state().collected_leaks == 0
        assert agent.addresses.state().demand == 1


async def test_absence_from_the_cache_alone_frees_nothing() -> None:
    bench = await joined()
    async with bench.controller(), bench.running() as agent:
        pod = await bench.schedule("pod")
        await bench.add("sandbox", pod)
        await bench.settle()
        agent._pods._cache.remove(pod.key)  # the cache is wrong: the cluster knows the pod
        await bench.settle(3 * GRACE)
        assert agent.addresses.state().collected_leaks == 0
        assert agent.addresses.check(owner("sandbox", pod))


async def test_a_pod_of_the_same_name_is_another_pod() -> None:
    bench = await joined()
    async with bench.controller(), bench.running() as agent:
        pod = await bench.schedule("web-0")
        await bench.add("old", pod)
        await bench.settle()
        await bench.remove(pod)
        again = await bench.schedule("web-0")
        await bench.add("new", again)
        await bench.settle(GRACE + 10)
        assert agent.addresses.state().collected_leaks == 1
        assert agent.addresses.check(owner("new", again))


async def test_a_pods_newer_sandbox_makes_the_older_one_collectable() -> None:
    bench = await joined()
    async with bench.controller(), bench.running() as agent:
        pod = await bench.schedule("pod")
        await bench.add("older", pod)
        newer = await bench.add("newer", pod)
        assert agent.addresses.state().demand == 2
        await bench.settle(GRACE + 10)
        assert agent.addresses.state().demand == 1
        assert await bench.add("newer", pod) == newer
        assert bench.cluster.calls["get"] == 3, "the Node was asked for, its configuration, and the pod"


async def test_the_sandbox_whose_address_its_pod_shows_is_not_collected_however_late_another_one_asked() -> (
    None
):
    bench = await joined()
    async with bench.controller(), bench.running() as agent:
        pod = await bench.schedule("pod")
        lives = await bench.add("lives", pod)
        await bench.report(pod, PodPhase.RUNNING, lives)
        await bench.add("given up long ago", pod)
        await bench.settle(GRACE + 10)
        assert agent.addresses.check(owner("lives", pod))


async def test_a_sandbox_that_asked_late_is_collected_once_its_pod_is_known_to_live_in_another() -> None:
    bench = await joined()
    async with bench.controller(), bench.running() as agent:
        pod = await bench.schedule("pod")
        lives = await bench.add("lives", pod)
        await bench.report(pod, PodPhase.RUNNING, lives)
        await bench.add("given up long ago", pod)
        await bench.settle(2 * GRACE + 20)
        assert [line["sandbox"] for line in bench.log("collected a leaked sandbox")] == ["given up long ago"]
        assert await bench.add("lives", pod) == lives
        assert agent.addresses.state().demand == 1


async def test_an_add_that_comes_after_its_own_delete_does_not_make_the_pods_sandbox_look_old() -> None:
    bench = await joined()
    async with bench.controller(), bench.running() as agent:
        pod = await bench.schedule("pod")
        agent.addresses.delete(owner("given up", pod))
        lives = await bench.add("lives", pod)
        await bench.add("given up", pod)
        await bench.settle(GRACE + 10)
        assert agent.addresses.state().collected_leaks == 1
        assert await bench.add("lives", pod) == lives


async def test_a_newer_sandbox_that_waits_in_vain_gets_what_the_older_one_leaked() -> None:
    bench = await joined()
    bench.capacity = 1
    await bench.make_subnet(batch=1, buffer=0.0, exhausted=True, starved=True)
    async with bench.controller(), bench.running() as agent:
        pod = await bench.schedule("pod")
        address = await bench.add("older", pod)
        for _ in range(40):
            try:
                assert await bench.add("newer", pod) == address
            except Exception:  # noqa: BLE001, S112 - the kubelet tries again, whatever it was told
                continue
            break
        assert agent.addresses.state().collected_leaks == 1
        assert agent.addresses.check(owner("newer", pod))


async def test_a_leak_from_before_a_restart_is_collected_after_it() -> None:
    bench = await joined()
    async with bench.controller():
        async with bench.running():
            pod = await bench.schedule("pod")
            await bench.add("sandbox", pod)
            await bench.add("newer", pod)
            await bench.settle()
        async with bench.running() as agent:
            await bench.settle(GRACE + 10)
            assert agent.addresses.state().collected_leaks == 1
            assert agent.addresses.check(owner("newer", pod))


async def test_nothing_is_collected_while_the_cluster_cannot_be_asked() -> None:
    faults = Script()
    bench = await joined(faults)
    async with bench.controller(), bench.running() as agent:
        pod = await bench.schedule("pod")
        await bench.add("sandbox", pod)
        await bench.settle()
        await bench.remove(pod)
        faults.steps["get"] = [Unavailable("down")] * 5
        await bench.settle(GRACE + 5)
        assert agent.addresses.state().collected_leaks == 0
        await bench.settle(300)
        assert agent.addresses.state().collected_leaks == 1


async def test_a_sandbox_without_a_uid_is_collected_only_when_no_pod_of_its_name_is_on_the_node() -> None:
    bench = await joined()
    async with bench.controller(), bench.running() as agent:
        here = await bench.schedule("here")
        moved = await bench.schedule("moved", node="node-2")
        for pod in (here, moved):
            nameless = structs.replace(owner(f"of-{pod.metadata.name}", pod), pod="")
            await agent.addresses.add(nameless, arrived=bench.clock.monotonic())
        await bench.settle(GRACE + 10)
        assert agent.addresses.state().collected_leaks == 1
        assert agent.addresses.check(owner("of-here"))


async def test_a_static_pod_lives_as_long_as_its_mirror_shows_its_hash() -> None:
    bench = await joined()
    async with bench.controller(), bench.running() as agent:
        mirror = await bench.schedule("static", config_hash="0123abcd")
        static = structs.replace(owner("sandbox", mirror), pod="0123abcd")
        await agent.addresses.add(static, arrived=bench.clock.monotonic())
        await bench.settle(3 * GRACE)
        assert agent.addresses.state().collected_leaks == 0
        await bench.remove(mirror)
        await bench.schedule("static", config_hash="another")
        await bench.settle(GRACE + 10)
        assert agent.addresses.state().collected_leaks == 1


async def test_who_does_not_say_whose_it_is_is_left_to_the_runtimes_own_collection() -> None:
    bench = await joined()
    async with bench.controller(), bench.running() as agent:
        now = bench.clock.monotonic()
        await agent.addresses.add(Owner("unnamed", "eth0"), arrived=now)
        await agent.addresses.add(Owner("uid-only", "eth0", pod="some-uid"), arrived=now)
        await bench.settle(3 * GRACE)
        assert agent.addresses.state().collected_leaks == 0


async def test_a_del_while_the_cluster_is_asked_is_not_counted_as_a_leak() -> None:
    faults = Script()
    bench = await joined(faults)
    async with bench.controller(), bench.running() as agent:
        pod = await bench.schedule("pod")
        await bench.add("sandbox", pod)
        await bench.settle()
        await bench.remove(pod)
        faults.steps["get"] = [20.0]
        await bench.settle(GRACE + 5)
        assert bench.delete("sandbox", pod)
        await bench.settle(60)
        assert agent.addresses.state().collected_leaks == 0


async def test_a_pod_that_shows_up_while_the_cluster_is_asked_is_alive() -> None:
    faults = Script()
    bench = await joined(faults)
    async with bench.controller(), bench.running() as agent:
        pod = await bench.schedule("pod")
        await bench.add("sandbox", pod)
        await bench.settle()
        agent._pods._cache.remove(pod.key)
        faults.steps["get"] = [20.0]
        faults.lost_answers["get"] = [NotFound("no such pod")]
        await bench.settle(GRACE + 5)
        agent._pods._cache.put(await bench.server.get(Pod, "pod", "default"))
        await bench.settle(60)
        assert agent.addresses.state().collected_leaks == 0
