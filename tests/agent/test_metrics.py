"""What Prometheus is told, and that every name of it is documented."""

import asyncio
import re
from pathlib import Path

import pytest
from msgspec import structs
from prometheus_client.parser import text_string_to_metric_families

from agent.calling import Journal, NoNotes, answer_to, config, environment
from agent.pool_addresses import STATE, PoolAddresses
from podtide.agent.api.cni_calls import CniCalls
from podtide.agent.api.metrics import Metrics
from podtide.agent.networks.counts import Counts
from podtide.agent.port import NodeState
from podtide.core.pool.states import State
from podtide.runtime.clock import LoopClock

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "agent.md"

FULL = structs.replace(
    STATE,
    counts={state: 2**place for place, state in enumerate(State)},
    primaries=2,
    exhausted=True,
    starved=True,
)


class Stated(PoolAddresses):
    """Addresses of which a certain state is told."""

    def __init__(self, state: NodeState) -> None:
        super().__init__(LoopClock())
        self._state = state

    def state(self) -> NodeState:
        return self._state


def samples(metrics: Metrics) -> dict[str, float]:
    """Every sample but those of the process, by name and labels."""
    return {
        sample.name
        + "".join(f",{label}={value}" for label, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
        if not sample.name.startswith("process_")
    }


def told(state: NodeState) -> dict[str, float]:
    counts = Counts()
    counts.writes, counts.conflicts, counts.retries = 7, 8, 9
    return {
        name: value
        for name, value in samples(Metrics(Stated(state), counts)).items()
        if not name.startswith("podtide_agent_add_seconds")
    }


def test_the_node_is_told_in_the_names_of_cns_and_in_our_own() -> None:
    by_subnet = ",subnet=pods,subnet_cidr=10.1.0.0/16"
    assert told(FULL) == {
        f"cx_ipam_pod_allocated_ips{by_subnet}": 4 + 32,
        f"cx_ipam_available_ips{by_subnet}": 2,
        f"cx_ipam_batch_size{by_subnet}": 16,
        f"cx_ipam_max_ips{by_subnet}": 250,
        f"cx_ipam_pending_programming_ips{by_subnet}": 1 + 16,
        f"cx_ipam_pending_release_ips{by_subnet}": 8,
        f"cx_ipam_primary_ips{by_subnet}": 2,
        f"cx_ipam_requested_ips{by_subnet}": 15,
        f"cx_ipam_secondary_ips{by_subnet}": 31,
        f"cx_ipam_total_ips{by_subnet}": 33,
        f"cx_ipam_subnet_exhaustion_state{by_subnet}": 1,
        "podtide_agent_synced": 1,
        "podtide_agent_in_contact": 1,
        "podtide_agent_demand": 3,
        "podtide_agent_waiting_pods": 2,
        "podtide_agent_starved": 1,
        "podtide_agent_request_writes_total": 4,
        "podtide_agent_restatements_total": 3,
        "podtide_agent_collected_leaks_total": 5,
        "podtide_agent_alarms_total": 6,
        "podtide_agent_pool_writes_total": 7,
        "podtide_agent_pool_conflicts_total": 8,
        "podtide_agent_pool_retries_total": 9,
        **{f"podtide_agent_addresses,state={state}": value for state, value in FULL.counts.items()},
    }


def test_what_is_not_known_is_not_told_as_zero() -> None:
    unknown = structs.replace(
        STATE, synced=False, demand=None, requested=None, scaler=None, subnet="", subnet_cidr=""
    )
    names = told(unknown)
    assert not [name for name in names if name.startswith("cx_ipam")]
    assert "podtide_agent_demand" not in names
    assert names["podtide_agent_synced"] == 0


def test_a_request_that_is_not_known_leaves_the_others_of_its_subnet() -> None:
    names = {name.partition(",")[0] for name in told(structs.replace(STATE, requested=None, scaler=None))}
    assert "cx_ipam_total_ips" in names
    assert not names & {"cx_ipam_requested_ips", "cx_ipam_batch_size", "cx_ipam_max_ips"}


async def test_calls_are_counted_by_verb_and_outcome_and_adds_are_timed() -> None:
    clock = LoopClock()
    addresses = PoolAddresses(clock)
    metrics = Metrics(addresses)
    calls = CniCalls(addresses, NoNotes(), clock=clock, log=Journal().log, count=metrics.count)
    adding = asyncio.create_task(answer_to(calls, environment("ADD"), config(), arrived=0.0))
    await asyncio.sleep(0.3)
    addresses.grant("10.1.0.5")
    await adding
    for verb in ("DEL", "STATUS", "NONSENSE", "RUBBISH"):
        await answer_to(calls, environment(verb), config(), arrived=0.0)
    now = samples(metrics)
    assert {name: value for name, value in now.items() if name.startswith("podtide_agent_calls_total")} == {
        "podtide_agent_calls_total,outcome=ok,verb=ADD": 1,
        "podtide_agent_calls_total,outcome=ok,verb=DEL": 1,
        "podtide_agent_calls_total,outcome=ok,verb=STATUS": 1,
        "podtide_agent_calls_total,outcome=InvalidEnvironment,verb=other": 2,
    }
    assert now["podtide_agent_add_seconds_count"] == 1
    assert now["podtide_agent_add_seconds_bucket,le=0.25"] == 0
    assert now["podtide_agent_add_seconds_bucket,le=0.5"] == 1


def families() -> list[tuple[str, str]]:
    found = text_string_to_metric_families(Metrics(Stated(FULL)).render().decode())
    return sorted(
        (f"{family.name}_total" if family.type == "counter" else family.name, family.documentation)
        for family in found
        if not family.name.startswith("process_") and not family.name.endswith("_created")
    )


@pytest.mark.parametrize(("name", "sentence"), families())
def test_every_metric_is_a_sentence_for_people(name: str, sentence: str) -> None:
    assert sentence.endswith("."), name
    assert sentence[0].isupper(), name


def test_every_metric_is_documented_and_no_other() -> None:
    documented = re.findall(r"^\| `((?:cx|podtide)_\w+)` \|", DOCUMENTATION.read_text(), flags=re.MULTILINE)
    assert sorted(documented) == [name for name, _ in families()]
