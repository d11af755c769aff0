"""The decision is swapped, and nothing else: the reactive baseline on the story of the design papers."""

from agent.node_bench import Bench
from podtide.agent.request.sizing_policy import ExactPolicy, PoolSituation
from podtide.core.subnet.scaler import Scaler
from podtide.runtime.settings import Settings
from podtide.simulation.nodes.other_agents import ReactivePolicy

BASELINE = Settings(add_wait_seconds=0.0)
CALM = PoolSituation(demand=36, primaries=1, requested=16, held=16, assigned=1, releasing=0)


def test_the_baseline_sees_assignments_and_no_pods() -> None:
    decided = ReactivePolicy().decide(CALM, Scaler())
    assert decided.request == 16
    assert str(decided) == "request 16 after 16, in batches of 16; 1 assigned, 15 free of 16 held"


def test_podtide_sees_pods_and_no_last_request() -> None:
    decided = ExactPolicy().decide(CALM, Scaler())
    assert decided.request == 47
    assert str(decided).startswith("request 47 = ")


async def test_the_baseline_asks_for_one_batch_at_a_time_and_fails_adds_where_podtide_fails_none() -> None:
    failed = {}
    requests = {}
    for name, policy in (("reactive", ReactivePolicy()), ("exact", ExactPolicy())):
        settings = BASELINE if name == "reactive" else Settings()
        bench = Bench(policy=policy, settings=settings)
        await bench.join()
        failed[name] = 0
        async with bench.controller(), bench.running():
            await bench.settle()
            pods = await bench.schedule_many(36)
            for pod in pods:
                while True:
                    try:
                        await bench.add(pod.metadata.name, pod)
                    except Exception:  # noqa: BLE001 - a kubelet counts failures, whatever they are, and tries again
                        failed[name] += 1
                        await bench.settle(1)
                    else:
                        break
            await bench.settle()
            requests[name] = bench.cluster.requests
    assert requests == {"reactive": [16, 32, 48], "exact": [15, 47]}
    assert failed["exact"] == 0
    assert failed["reactive"] >= 2
