"""What `make peers` counts and prints: requests by the API server's metric, costs of processes, ratios, and its place in pages."""

import os
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from kubelet_deadline import KUBELET_SECONDS
from page_section import with_section
from peers.background import Background
from peers.contenders import Contender, Kind, NodePlugin, PeerPod, absent
from peers.figures import COUNT, RATE, TIME, Figure, times_better
from peers.plugin_memory import peak_plugin_memory_bytes
from peers.plugin_process import PluginAnswer, PluginCall, run_at_once
from peers.reactive_pool import reactive_requests, recorded_targets
from peers.request_counts import Asked, counted
from peers.results import result_of
from peers.sizes import FULL
from peers.table import Pair, markdown, pairs, rows
from peers.turns import Bill, Turn, faults_in
from podtide.core.subnet.scaler import Scaler

ROOT = Path(__file__).parents[2]

METRICS = """\
# HELP apiserver_request_total [STABLE] Counter of apiserver requests
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",group="whereabouts.cni.cncf.io",resource="ippools",scope="resource",verb="GET"} 7
apiserver_request_total{code="404",group="whereabouts.cni.cncf.io",resource="ippools",scope="resource",verb="GET"} 2
apiserver_request_total{code="0",group="",resource="pods",scope="cluster",verb="WATCH"} 5
apiserver_request_total{code="200",group="",resource="",scope="",verb="GET"} 90
apiserver_request_total{code="200",group="coordination.k8s.io",resource="leases",scope="resource",verb="PUT"} 1e+06
apiserver_request_terminations_total{code="429",resource="ippools",verb="GET"} 3
"""
GET_POOL, PUT_LEASE = Asked("GET", "ippools"), Asked("PUT", "leases")


def test_requests_are_counted_over_all_codes_and_watches_and_health_are_not_among_them() -> None:
    assert counted(METRICS) == {GET_POOL: 9, PUT_LEASE: 1_000_000}


def test_what_is_asked_while_nobody_calls_is_not_a_calls() -> None:
    background = Background(
        seconds=20.0,
        requests=Counter({PUT_LEASE: 10, GET_POOL: 1}),
        api_server_cpu_seconds=2.0,
        agent_cpu_seconds=0.5,
    )
    asked = Counter({PUT_LEASE: 9, GET_POOL: 8, Asked("LIST", "pods"): 0})
    assert background.requests_per_call(asked, 4.0, 10) == {PUT_LEASE: 0.7, GET_POOL: pytest.approx(0.78)}
    assert background.api_server_cpu_per_call(1.4, 4.0, 10) == pytest.approx(0.1)
    assert background.agents_cpu_per_call(1.0, 2, 4.0, 10) == pytest.approx(0.08)
    assert background.agents_cpu_per_call(0.1, 2, 4.0, 10) == 0.0


def script(directory: Path, text: str) -> PluginCall:
    plugin = directory / "plugin"
    plugin.write_text(f"#!/bin/sh\n{text}\n")
    plugin.chmod(0o755)
    configuration = directory / "configuration"
    configuration.write_text("from stdin")
    return PluginCall(plugin, {"PATH": os.environ["PATH"], "CNI_COMMAND": "ADD"}, configuration)


@pytest.mark.real_time
def test_plugins_that_run_at_once_are_told_apart_in_their_order(tmp_path: Path) -> None:
    call = script(tmp_path, 'echo "$CNI_COMMAND $(cat)"; [ "$CNI_COMMAND" = ADD ]')
    other = PluginCall(call.executable, {**call.environment, "CNI_COMMAND": "DEL"}, call.configuration)
    first, second = run_at_once([call, other], tmp_path)
    assert (first.output, first.exit_status, first.is_answered) == ("ADD from stdin\n", 0, True)
    assert (second.output, second.exit_status, second.is_answered) == ("DEL from stdin\n", 1, False)
    assert 0 < first.seconds < second.seconds == KUBELET_SECONDS
    assert first.cpu_seconds > 0


@pytest.mark.real_time
def test_a_plugin_that_does_not_end_is_killed_at_the_deadline(tmp_path: Path) -> None:
    [answer] = run_at_once([script(tmp_path, "exec sleep 600")], tmp_path, deadline_seconds=0.05)
    assert answer.exit_status < 0
    assert answer.seconds == KUBELET_SECONDS


@pytest.mark.real_time
def test_the_memory_of_a_small_plugin_is_not_that_of_python(tmp_path: Path) -> None:
    assert 0 < peak_plugin_memory_bytes(script(tmp_path, "true"), tmp_path) < 4_000_000


def answer(
    address: str = "10.0.0.1", began: float = 0.0, ended: float = 1.0, status: int = 0
) -> PluginAnswer:
    output = f'{{"ips": [{{"address": "{address}/24"}}]}}' if status == 0 else '{"code": 11}'
    return PluginAnswer(exit_status=status, output=output, began=began, ended=ended, cpu_seconds=0.5)


def test_an_address_that_two_pods_got_is_a_fault_and_a_failed_add_is_none() -> None:
    assert faults_in([answer("10.0.0.1"), answer("10.0.0.2"), answer(status=1)]) == []
    assert faults_in([answer("10.0.0.1"), answer("10.0.0.1")]) == ["10.0.0.1 was given to 2 pods"]


def bill(*answers: PluginAnswer) -> Bill:
    return Bill(
        answers=answers,
        seconds=2.0,
        agents=1,
        agents_cpu_seconds=0.3,
        api_server_cpu_seconds=0.9,
        requests=Counter({GET_POOL: 6}),
    )


def test_a_rate_counts_answers_alone_and_a_failure_is_the_slowest_of_all_calls() -> None:
    adds = bill(answer(began=0, ended=1), answer(began=0, ended=4), answer(began=1, ended=2, status=1))
    result = result_of(
        [Turn(adds, bill(answer()), ["something"])], Background(seconds=1.0, requests=Counter())
    )
    assert (result.adds.rate, result.adds.failed, result.adds.calls) == (0.5, 1, 3)
    assert result.adds.percentile(0.5) == 4.0
    assert result.adds.percentile(0.99) == KUBELET_SECONDS
    assert result.adds.agents_cpu_seconds == pytest.approx(0.1)
    assert result.adds.requests == {GET_POOL: 2.0}
    assert result.faults == ["something"]


def test_how_much_better_is_a_factor_whichever_way_is_better() -> None:
    assert times_better(Figure("", RATE, 200.0), Figure("", RATE, 10.0)) == 20.0
    assert times_better(Figure("", TIME, 0.01), Figure("", TIME, 0.02)) == 2.0
    assert times_better(Figure("", TIME, 0.02), Figure("", TIME, 0.01)) == 0.5
    assert times_better(Figure("", COUNT, 0.0), Figure("", COUNT, 8.0)) is None


def contender(name: str, kind: Kind) -> Contender:
    node = NodePlugin(Path("configuration"), {"NODENAME": "a"})
    return Contender(name=name, kind=kind, executable=Path("/bin/plugin"), by_node={"a": node}, held=list)


def test_a_row_has_both_figures_and_the_factor_and_a_dash_where_there_is_none() -> None:
    ours = [Figure("rate", RATE, 213.0), Figure("requests", COUNT, 0.0), Figure("p99", TIME, 0.5)]
    theirs = [Figure("rate", RATE, 6.4), Figure("requests", COUNT, 8.5), Figure("p99", TIME, KUBELET_SECONDS)]
    assert list(rows(ours, theirs)) == [
        ("rate", "213/s", "6.4/s", "33 ×"),
        ("requests", "0", "8.50", "-"),
        ("p99", "500.0 ms", "no answer", "480 ×"),
    ]


def test_where_a_peer_cannot_be_had_its_row_says_why_and_ours_stay() -> None:
    pair = Pair(Kind.SHARED, contender("podtide", Kind.SHARED), absent("Whereabouts", Kind.SHARED, "no Go"))
    assert list(markdown(pair, {"podtide": [Figure("rate", RATE, 20.0)]}))[2:] == [
        "| rate | 20/s | - | - |",
        "| Whereabouts | not measured: no Go | | |",
    ]


def test_contenders_of_one_kind_are_a_pair_with_ours_first() -> None:
    everybody = [contender(name, kind) for kind in Kind for name in ("peer", "podtide")]
    assert [(pair.kind, pair.ours.name, pair.theirs.name) for pair in pairs(everybody)] == [
        (kind, "podtide", "peer") for kind in Kind
    ]


def test_a_plugin_is_called_as_a_runtime_calls_it() -> None:
    call = contender("podtide", Kind.SHARED).call("ADD", PeerPod("a", "web-0", "uid-0"), "sandbox-0")
    assert call.environment == {
        "CNI_COMMAND": "ADD",
        "CNI_CONTAINERID": "sandbox-0",
        "CNI_NETNS": "/var/run/netns/sandbox-0",
        "CNI_IFNAME": "net1",
        "CNI_PATH": "/bin",
        "CNI_ARGS": "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-0;"
        "K8S_POD_INFRA_CONTAINER_ID=sandbox-0;K8S_POD_UID=uid-0",
        "NODENAME": "a",
    }


def test_the_first_node_has_the_pods_of_the_burst_and_the_others_those_of_the_fleet() -> None:
    assert [FULL.pods_on(number) for number in range(3)] == [40, 5, 5]
    assert (FULL.burst.calls, FULL.fleet.calls, FULL.nodes) == (40, 100, 20)


def test_the_reactive_pool_comes_to_every_recorded_target_one_batch_at_a_time() -> None:
    targets = list(recorded_targets())
    assert len(targets) > 90
    for demand, scaler, target in targets:
        requests = reactive_requests(demand, scaler)
        assert requests == list(range(scaler.batch, target + 1, scaler.batch))


def test_a_burst_takes_the_reactive_pool_a_round_trip_for_each_batch() -> None:
    assert reactive_requests(36, Scaler(16, Fraction(1, 2), 250)) == [16, 32, 48]


def test_a_section_is_replaced_between_its_marks_and_the_rest_stays() -> None:
    page = "before\n<!-- peers -->\nold\n<!-- end -->\n<!-- other -->\nkept\n<!-- end -->\n"
    changed = with_section(page, "peers", r"new \1")
    assert changed == "before\n<!-- peers -->\nnew \\1\n<!-- end -->\n<!-- other -->\nkept\n<!-- end -->\n"
    with pytest.raises(AssertionError, match="0 sections"):
        with_section(page, "missing", "new")


@pytest.mark.parametrize("page", ["docs/benchmarks.md", "README.md"])
def test_the_pages_that_it_writes_have_its_section(page: str) -> None:
    text = (ROOT / page).read_text()
    assert "anew" in with_section(text, "peers", "anew")
