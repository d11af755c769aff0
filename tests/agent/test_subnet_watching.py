from agent.node_bench import Bench, container
from cluster.faulty_cluster import Script
from podtide.cluster.port import NotFound
from podtide.resources.base import ObjectMeta
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.marks import SYSTEM_NAMESPACE

SUBNET = "ClusterSubnet metadata.name=pods"
STATE = "ClusterSubnetState metadata.name=pods"


async def test_without_a_cluster_subnet_a_flip_of_the_state_alone_brings_the_node_to_one_free() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        for number in range(4):
            await bench.add(f"sandbox-{number}")
        assert bench.cluster.is_watching(STATE)
        await bench.set_state(exhausted=True)
        await bench.settle()
        assert len(list(agent.addresses.all_addresses())) == 5
        assert agent.addresses.state().exhausted
        await bench.set_state(exhausted=False)
        await bench.settle()
        assert len(list(agent.addresses.all_addresses())) == 15


async def test_a_deleted_state_no_longer_counts() -> None:
    bench = Bench()
    await bench.join()
    await bench.set_state(exhausted=True)
    async with bench.controller(), bench.running():
        await bench.settle()
        assert bench.cluster.requests == [1]
        await bench.server.delete(ClusterSubnetState, "pods", SYSTEM_NAMESPACE)
        await bench.settle()
        assert bench.cluster.requests == [1, 15]


async def test_a_foreign_state_is_never_looked_at() -> None:
    bench = Bench()
    await bench.join()
    await bench.set_state(exhausted=True, name="another-subnet")
    async with bench.controller(), bench.running() as agent:
        await bench.set_state(exhausted=True, name="a-third")
        await bench.settle()
        assert bench.cluster.requests == [15]
        assert not agent.addresses.state().exhausted
        kinds = {what for what in bench.cluster.watched if what.startswith("ClusterSubnet")}
        assert kinds == {SUBNET, STATE}


async def test_with_a_cluster_subnet_the_state_is_not_watched() -> None:
    bench = Bench()
    await bench.join()
    await bench.make_subnet()
    await bench.set_state(exhausted=True)
    async with bench.controller(), bench.running():
        await bench.settle()
        assert bench.cluster.watched[STATE] == 0
        assert bench.cluster.requests == [15]


async def test_making_a_cluster_subnet_ends_the_watch_of_the_state_and_deleting_it_resumes_it() -> None:
    bench = Bench()
    await bench.join()
    await bench.set_state(exhausted=True)
    async with bench.controller(), bench.running():
        await bench.settle()
        assert (bench.cluster.is_watching(SUBNET), bench.cluster.is_watching(STATE)) == (True, True)
        assert bench.cluster.requests == [1]
        await bench.make_subnet()
        await bench.settle()
        assert (bench.cluster.is_watching(SUBNET), bench.cluster.is_watching(STATE)) == (True, False)
        assert bench.cluster.requests == [1, 15]
        await bench.drop_subnet()
        await bench.settle()
        assert (bench.cluster.is_watching(SUBNET), bench.cluster.is_watching(STATE)) == (True, True)
        assert bench.cluster.requests[-1] == 1


async def test_a_cluster_subnet_without_a_status_leaves_the_nodes_own_parameters_in_force() -> None:
    bench = Bench()
    await bench.join()
    metadata = ObjectMeta(name="pods", namespace=SYSTEM_NAMESPACE)
    await bench.server.create(ClusterSubnet(metadata=metadata), manager="kubectl")
    async with bench.controller(), bench.running():
        await bench.settle()
        assert bench.cluster.requests == [15]


async def test_where_the_cluster_does_not_know_the_kinds_the_nodes_own_parameters_are_in_force() -> None:
    missing = NotFound("the server knows no such kind")
    bench = Bench(faults=Script(list=[None, None, *[missing] * 6]))
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        assert await bench.add("sandbox")
        agent.addresses.require_ready()
        assert bench.cluster.requests == [15]
        await bench.settle(600)  # somebody installs them
        await bench.make_subnet(batch=32, buffer=0.5)
        await bench.settle()
        assert bench.cluster.requests == [15, 31]


async def test_a_subnet_may_be_called_what_no_object_can_be() -> None:
    bench = Bench()
    await bench.join(container("nc", subnet="a,b=c\\"))
    async with bench.controller(), bench.running() as agent:
        assert await bench.add("sandbox")
        assert agent.addresses.state().subnet == "a,b=c\\"


async def test_a_node_that_moves_to_another_subnet_watches_that_one() -> None:
    bench = Bench()
    config = await bench.join()
    async with bench.running() as agent:
        await bench.settle()
        [there] = config.status.network_containers
        await bench.make_subnet("others", batch=32, buffer=0.5)
        await bench.fill_in([container(there.id, subnet="others")])
        await bench.settle()
        assert not bench.cluster.is_watching(SUBNET)
        assert not bench.cluster.is_watching(STATE)
        assert bench.cluster.is_watching("ClusterSubnet metadata.name=others")
        assert bench.cluster.requests == [15, 31]
        assert agent.addresses.state().subnet == "others"


async def test_the_first_request_of_a_node_obeys_the_exhaustion() -> None:
    bench = Bench()
    bench.capacity = 3
    await bench.join()
    await bench.make_subnet(batch=1, buffer=1.0, exhausted=True)
    pods = await bench.schedule_many(2)
    async with bench.controller(), bench.running():
        assert all([await bench.add(pod.metadata.name, pod) for pod in pods])
        await bench.settle()
        assert bench.cluster.requests == [3]
