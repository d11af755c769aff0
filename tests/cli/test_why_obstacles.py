"""The first line of `podtide why` when something is wrong: it says what, and what to do, and never that nothing has to happen."""

import asyncio
import hashlib
import io
import re
import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import socket

import pytest
from msgspec.structs import replace

from allocator.service.running import open_store
from allocator.service.running import served as allocator_serving
from cli.conftest import Run
from cli.drawn_cluster import THEN, DrawnCluster, addresses, served
from podtide.allocator.containers import Wish
from podtide.allocator.service.tokens import Tokens
from podtide.allocator.store import InlineExecutor, StoreRules, open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.cli.why.chain import DecisionChain, build_chain
from podtide.cli.why.command import lines_of
from podtide.cli.why.facts import gather_facts
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.port import Forbidden, R
from podtide.cluster.served import SERVED_KINDS
from podtide.core.subnet.scaler import DEFAULT_MAX_IPS, Scaler
from podtide.core.subnet.statement import Statement, request_at
from podtide.resources.base import ObjectMeta
from podtide.resources.conditions import Condition, ConditionStatus
from podtide.resources.event import Event, EventType, ObjectReference
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import STATEMENT_ANNOTATION, SYSTEM_NAMESPACE
from podtide.resources.pod import Pod, PodPhase
from podtide.resources.statement_annotation import render
from podtide.resources.timestamps import to_time, to_wall_seconds
from podtide.runtime.clock import LoopClock, SystemClock
from podtide.runtime.logging import make_logger

BEGIN = to_wall_seconds(THEN)


def a_cluster() -> DrawnCluster:
    """A cluster whose objects were all made at `THEN`."""
    return DrawnCluster(EmbeddedCluster(kinds=SERVED_KINDS, clock=LoopClock(epoch=BEGIN)))


async def why(drawn: DrawnCluster, name: str, *, after: float = 1.0, **more: object) -> DecisionChain:
    """The answer so many seconds after everything was made."""
    facts = await gather_facts(drawn.cluster, name, "default", BEGIN + after, **more)  # type: ignore[arg-type]
    return build_chain(facts)


async def an_owed_node(drawn: DrawnCluster, *, reason: str = "SubnetShort", message: str = "") -> None:
    """Node a has two pods with an address, one without, and a request that was not carried out."""
    config = await drawn.config("a", requested=3, granted=addresses(2), short=True)
    (granted,) = config.status.conditions
    told = replace(granted, reason=reason, message=message or granted.message)
    status = replace(config.status, conditions=[told])
    await drawn.cluster.replace_status(replace(config, status=status), manager="test")
    for number, ip in enumerate([*addresses(2), ""]):
        await drawn.pod(f"web-{number}", "a", ip)


async def test_a_node_in_a_full_subnet_on_which_nobody_waits_is_not_told_that_nothing_has_to_happen() -> None:
    drawn = a_cluster()
    await drawn.lead()
    await drawn.config("a", requested=0)
    await drawn.subnet(reserved=253, batch=1, buffer=0.0, exhausted=True)
    await drawn.subnet_state(exhausted=True)
    chain = await why(drawn, "a")
    assert chain.headline.startswith(
        "node a, where 0 pods have an address and 0 wait for one: the next pod here waits: "
        "subnet pods is full: all 253 addresses are reserved"
    )
    assert "`podtide subnet grow blue pods CIDR" in chain.headline


async def test_a_node_that_is_owed_and_has_some_to_spare_is_told_both() -> None:
    drawn = a_cluster()
    await drawn.lead()
    await drawn.config("a", requested=15, granted=addresses(4), short=True)
    await drawn.subnet(reserved=253, batch=1, buffer=0.0, exhausted=True)
    assert (await why(drawn, "a")).next.startswith("it has 4 to spare, then subnet pods is full")


async def test_in_a_full_subnet_what_is_free_on_the_pods_own_node_is_told_first() -> None:
    drawn = a_cluster()
    await drawn.lead()
    await drawn.config("a", requested=9, granted=addresses(4), short=True)
    await drawn.pod("served", "a", "10.1.0.10")
    for number in range(5):
        await drawn.pod(f"web-{number}", "a")
    await drawn.subnet(reserved=253, batch=1, buffer=0.0, exhausted=True, starved=True)
    for name in ("web-0", "web-4", "node/a"):
        assert (await why(drawn, name)).next.startswith(
            "node a has 3 free, which the next calls of the plugin take, for the 5 that wait; for the other 2: "
            "subnet pods is full: all 253 addresses are reserved"
        )


async def test_with_a_dead_allocator_nobody_is_told_that_addresses_are_granted_now() -> None:
    drawn = a_cluster()
    await drawn.lead()
    await an_owed_node(drawn, reason="AllocatorUnavailable", message="connection refused")
    await drawn.subnet(reserved=251, batch=1, buffer=0.0, exhausted=True)
    for name in ("web-2", "node/a"):
        assert (await why(drawn, name)).next == (
            "the allocator does not answer, and nothing is granted until it does: "
            "start it, or repair the connection to it (connection refused)"
        )


async def test_an_allocator_that_died_after_it_had_answered_is_told_by_the_cluster_subnet_with_its_age() -> (
    None
):
    drawn = a_cluster()
    await drawn.lead()
    await an_owed_node(drawn)
    away = Condition(
        type="AllocatorReachable",
        status=ConditionStatus.FALSE,
        last_transition_time=THEN,
        reason="AllocatorUnavailable",
        message="connection refused",
    )
    await drawn.say(await drawn.subnet(reserved=251), away)
    chain = await why(drawn, "web-2", after=20)
    assert chain.next.startswith(
        "the allocator has not answered for 20s, and nothing is granted until it does"
    )
    (subnet,) = [link.words for link in chain.links if link.topic == "subnet"]
    assert "251 of 253 reserved (before the allocator stopped answering)" in subnet
    await drawn.config("b", requested=0)
    assert "the allocator has not answered for 20s" in (await why(drawn, "node/b", after=20)).headline


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("NoSuchSubnet", "network blue has no subnet nowhere (named by label podtide.io/subnet of node a)"),
        ("NotAllowed", "use the token of this cluster"),
        ("StaleWish", "delete the Node and let it join anew"),
    ],
)
async def test_a_refusal_is_told_in_the_words_that_say_what_to_mend(reason: str, message: str) -> None:
    drawn = a_cluster()
    await drawn.lead()
    await an_owed_node(drawn, reason=reason, message=message)
    await drawn.subnet()
    assert (await why(drawn, "web-2")).next == f"the request is refused: {message}"


@pytest.mark.parametrize(
    ("after", "holder", "words"),
    [
        (60.0, "ctl-1", "was last renewed 60s ago, by ctl-1"),
        (1.0, "", "was given up, and none has taken it"),
    ],
)
async def test_without_a_leader_every_wait_is_for_one(after: float, holder: str, words: str) -> None:
    drawn = a_cluster()
    await drawn.lead(holder=holder)
    await an_owed_node(drawn)
    await drawn.subnet(reserved=251)
    await drawn.node("bare")
    await drawn.pod("on-bare", "bare")
    obstacle = (
        f"no request controller leads (Lease kube-system/podtide-controller {words}): "
        "start `podtide controller`, or see the log of the one that runs"
    )
    assert (await why(drawn, "web-2", after=after)).next == obstacle
    assert (await why(drawn, "on-bare", after=after)).next == (
        f"node bare has no NodeNetworkConfig, and {obstacle}"
    )
    await drawn.config("idle", requested=15, granted=addresses(15, 40))
    assert (await why(drawn, "node/idle", after=after)).next == f"it has 15 to spare, then {obstacle}"


async def test_without_a_lease_no_controller_was_ever_started() -> None:
    drawn = a_cluster()
    await drawn.node("bare")
    await drawn.pod("on-bare", "bare")
    assert "is not there: none was ever started" in (await why(drawn, "on-bare")).headline


class NoLeases(EmbeddedCluster):
    """A cluster that a person without rights on Leases looks at."""

    async def get(self, kind: type[R], name: str, namespace: str = "") -> R:
        if kind is Lease:
            raise Forbidden("leases are not for you")
        return await super().get(kind, name, namespace)


async def test_who_may_not_read_the_lease_is_told_what_else_is_known() -> None:
    drawn = DrawnCluster(NoLeases(kinds=SERVED_KINDS, clock=LoopClock(epoch=BEGIN)))
    await an_owed_node(drawn, reason="NotAllowed", message="use another token")
    await drawn.subnet()
    assert (await why(drawn, "web-2", after=100)).next == "the request is refused: use another token"


async def an_agent(drawn: DrawnCluster, name: str) -> Pod:
    """A pod on node a that some chart has labelled as an agent."""
    pod = await drawn.pod(name, "a", namespace="kube-system", host_network=True)
    labels = {"app.kubernetes.io/name": "ipam", "app.kubernetes.io/component": "agent"}
    return await drawn.cluster.replace(
        replace(pod, metadata=replace(pod.metadata, labels=labels)), manager="test"
    )


async def test_an_agent_that_does_not_ask_is_looked_for_by_what_runs_on_the_node() -> None:
    drawn = a_cluster()
    await drawn.lead()
    await drawn.config("a", requested=2, granted=addresses(2))
    for number in range(20):
        await drawn.pod(f"web-{number}", "a")
    await drawn.subnet()
    assert (await why(drawn, "web-1")).next == "the agent on node a asks for 31 within a second"
    assert (await why(drawn, "web-1", after=25)).next == (
        "the agent on node a has asked for 2 and not for 31 since 25s, so it does not run or does not reach the API "
        "server: see that `podtide agent` runs on node a and reaches the API server"
    )
    await an_agent(drawn, "backup-agent-b2")  # of another program
    agent = await an_agent(drawn, "podtide-agent-x7")
    assert (await why(drawn, "web-1", after=25)).next.endswith(
        "its pod kube-system/podtide-agent-x7 is Pending: "
        "`kubectl describe pod -n kube-system podtide-agent-x7` says why"
    )
    status = replace(agent.status, phase=PodPhase.RUNNING)
    await drawn.cluster.replace_status(replace(agent, status=status), manager="test")
    assert (await why(drawn, "web-1", after=25)).next.endswith(
        "`kubectl logs -n kube-system podtide-agent-x7` says what it lacks"
    )


async def test_a_pod_that_waits_beside_free_addresses_is_a_case_for_kubelet_and_plugin() -> None:
    drawn = a_cluster()
    await drawn.lead()
    await drawn.config("a", requested=15, granted=addresses(15))
    pod = await drawn.pod("web", "a")
    await drawn.subnet()
    begins = "node a has 15 free for the 1 that wait"
    assert (await why(drawn, "web")).next == f"{begins}: the next call of the plugin takes one"
    assert (await why(drawn, "web", after=45)).next.startswith(f"{begins}, but no sandbox was made for 45s")
    event = Event(
        metadata=ObjectMeta(name="failed", namespace="default"),
        involved_object=ObjectReference.to(pod),
        type=EventType.WARNING,
        reason="FailedCreatePodSandBox",
        message="cannot reach the agent at /run/podtide/agent.sock",
        last_timestamp=THEN,
    )
    await drawn.cluster.create(event, manager="kubelet")
    assert (await why(drawn, "web", after=45)).next == (
        f"{begins}, but its sandbox failed: cannot reach the agent at /run/podtide/agent.sock"
    )


async def test_idle_addresses_of_a_node_that_has_not_answered_the_batch_name_its_agent() -> None:
    drawn = a_cluster()
    await drawn.lead()
    await an_owed_node(drawn)
    request = request_at(0, Scaler(16), 1)
    config = await drawn.config("dead", requested=request, granted=addresses(15, 40))
    stated = Statement(
        demand=0, batch=16, buffer=Scaler(16).buffer, max_ips=DEFAULT_MAX_IPS, primaries=1, request=request
    )
    notes = {STATEMENT_ANNOTATION: render(stated)}
    await drawn.cluster.replace(
        replace(config, metadata=replace(config.metadata, annotations=notes)), manager="agent"
    )
    await drawn.subnet(capacity=19, reserved=19, batch=1, buffer=0.0, exhausted=True)
    assert (
        "15 are idle on dead (15) (the agent of dead has not answered the batch in force: see that it runs)"
    ) in (await why(drawn, "web-2")).headline


async def test_the_allocator_is_asked_where_it_can_be_and_tells_of_quarantine() -> None:
    drawn = a_cluster()
    await drawn.lead()
    await an_owed_node(drawn)
    await drawn.subnet(capacity=13, reserved=0)
    async with await open_allocator(
        "sqlite:///:memory:", clock=LoopClock(), rules=StoreRules(), executor=InlineExecutor(), migrate=True
    ) as allocator:
        await allocator.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/28",)))
        gone = Wish(
            id="gone",
            network="blue",
            subnet="pods",
            cluster="east",
            node="gone",
            request_uid="r",
            generation=1,
            count=12,
        )
        await allocator.put_container(gone)
        await allocator.delete_container("gone", cluster="east")
        chain = await why(drawn, "web-2", allocator=allocator)
    assert "subnet pods is full: all 13 addresses are reserved" in chain.headline
    assert "13 in quarantine after their nodes left" in chain.headline
    (subnet,) = [link.words for link in chain.links if link.topic == "subnet"]
    assert subnet.startswith("pods: 13 of 13 reserved (by the allocator), 0 free, 13 in quarantine")


async def test_reserved_is_never_shown_behind_what_nodes_hold() -> None:
    drawn = a_cluster()
    await drawn.lead()
    await drawn.config("a", requested=62, granted=addresses(62))
    await drawn.subnet(reserved=0)
    (subnet,) = [link.words for link in (await why(drawn, "a")).links if link.topic == "subnet"]
    assert subnet.startswith("pods: 63 of 253 reserved (at least: by what nodes show), 190 free")


async def test_an_answer_to_an_earlier_request_is_told_as_such() -> None:
    drawn = a_cluster()
    await drawn.lead()
    config = await drawn.config("a", requested=0)
    asked = replace(config, spec=replace(config.spec, requested_ip_count=15))
    await drawn.cluster.replace(asked, manager="agent")
    (grant,) = [link for link in (await why(drawn, "a")).links if link.topic == "grant"]
    assert grant.details[0].endswith("[of an earlier request]")


async def test_equal_events_are_one_line_with_a_count_and_formulas_are_for_who_asks() -> None:
    drawn = a_cluster()
    await drawn.lead()
    config = await drawn.config("a", requested=15, granted=addresses(15))
    subnet = await drawn.subnet()
    for number in range(20):
        event = Event(
            metadata=ObjectMeta(name=f"short-{number}", namespace=SYSTEM_NAMESPACE),
            involved_object=ObjectReference.to(config),
            type=EventType.WARNING,
            reason="SubnetShort",
            message="nothing left",
            last_timestamp=to_time(BEGIN + number),
        )
        await drawn.cluster.create(event, manager="test")
        of_subnet = replace(
            event,
            metadata=ObjectMeta(name=f"full-{number}", namespace=SYSTEM_NAMESPACE),
            involved_object=ObjectReference.to(subnet),
            message="R = 29 > T·Q = 0.9·29",
        )
        await drawn.cluster.create(of_subnet, manager="test")
    chain = await why(drawn, "a", after=60)
    terse, verbose = (list(lines_of(chain, verbose=on, width=None)) for on in (False, True))
    events = [line.split(None, 1)[1] for line in terse if line.startswith("  event")]
    assert events == ["41s ago, 20 times, NodeNetworkConfig a: Warning SubnetShort: nothing left"]
    assert not any("·" in line for line in terse)
    assert sum("R = 29 > T·Q" in line for line in verbose) == 1


async def test_on_eighty_columns_no_line_but_the_first_is_wider() -> None:
    drawn = a_cluster()
    await drawn.lead()
    await an_owed_node(drawn)
    await drawn.subnet(reserved=253, batch=1, buffer=0.0, exhausted=True, starved=True)
    lines = list(lines_of(await why(drawn, "web-2"), verbose=True, width=80))
    assert [line for line in lines[1:] if len(line) > 80] == []
    assert len(lines) > 10


async def draw_waiting(drawn: DrawnCluster) -> None:
    """Node a waits for an address of a full subnet, node b for the next call of the plugin."""
    await draw_full(drawn)
    await drawn.config("b", requested=15, granted=addresses(15, 40))
    await drawn.pod("soon", "b")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ("--allocator", "{closed}"),
            r"at {closed} \(cannot get subnet blue/pods: {closed} cannot be reached .*\): correct --allocator",
        ),
        (("--allocator", "{open}"), r"at {open}: .* was shown no token: give --token-file FILE\)"),
        (
            ("--allocator", "{open}", "--token-file", "{token}"),
            r"at {open}: .* the token is not known here: .*--token-file {token}: correct it there, or name another file\)",
        ),
        (
            ("--database", "{down}"),
            r"'s database: the database postgresql://me@.* did not answer: .*check that it runs, or correct --database",
        ),
        (
            ("--database", "{database}"),
            r"'s database \(network blue has no subnet pods.*\): correct --database",
        ),
    ],
)
def test_flags_that_lead_to_no_allocator_are_named_and_said_to_stop_nothing(
    podtide: Run, tmp_path: Path, flags: tuple[str, ...], words: str
) -> None:
    (tmp_path / "token").write_text("wrong")
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{hashlib.sha256(b'right').hexdigest()} administration\n")
    database = f"sqlite:///{tmp_path / 'empty.db'}"
    make_database(database, subnet="others")
    with socket() as closed, served(draw_waiting, tmp_path) as kubeconfig, allocator_served(tokens) as url:
        closed.bind(("127.0.0.1", 0))
        places = {
            "closed": f"http://127.0.0.1:{closed.getsockname()[1]}",
            "open": url,
            "down": f"postgresql://me@127.0.0.1:{closed.getsockname()[1]}/subnets",
            "token": tmp_path / "token",
            "database": database,
        }
        given = [flag.format(**places) for flag in flags]
        for name, begin in {
            "web-2": "pod default/web-2 has no address: subnet pods is full: all 3 addresses are reserved",
            "soon": "pod default/soon has no address: node b has 15 free for the 1 that wait",
        }.items():
            answer = podtide("why", name, "--kubeconfig", str(kubeconfig), *given)
            first = answer.out.splitlines()[0]
            assert first.startswith(begin)
            assert re.search("; could not ask the allocator ?" + words.format(**places) + "$", first)
            assert "nothing is granted" not in first


@contextmanager
def allocator_served(tokens: Path) -> Iterator[str]:
    """The URL of an allocator that knows the tokens in a file."""
    started, stopped = threading.Event(), threading.Event()
    urls: list[str] = []

    async def serve() -> None:
        known = Tokens(tokens, make_logger(io.StringIO(), SystemClock()))
        async with await open_store() as store, allocator_serving(store, tokens=known) as url:
            urls.append(url)
            started.set()
            await asyncio.to_thread(stopped.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert started.wait(20)
        yield urls[0]
    finally:
        stopped.set()
        thread.join()


async def draw_full(drawn: DrawnCluster) -> None:
    await drawn.lead(renewed=to_time(4_000_000_000.0))
    await an_owed_node(drawn)
    await drawn.subnet(capacity=3, reserved=3, exhausted=True, starved=True)


def test_the_command_that_it_prints_works_as_printed(podtide: Run, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'subnets.db'}"
    with served(draw_full, tmp_path) as kubeconfig:
        make_database(database)
        answer = podtide("why", "node/a", "--kubeconfig", str(kubeconfig), "--database", database)
    assert answer.status == 0, answer.err
    _begin, command, _end = answer.out.splitlines()[0].split("`")
    words = shlex.split(command.replace("CIDR", "10.1.1.0/29"))
    grown = podtide(*words[words.index("subnet") :])
    assert (grown.status, grown.err) == (0, "")
    assert "10.1.1.0/29" in grown.out


async def draw_stray(drawn: DrawnCluster) -> None:
    await drawn.lead(renewed=to_time(4_000_000_000.0))
    await drawn.config("a", requested=2, granted=addresses(2))
    await drawn.pod("stray", "a", "10.1.0.99")


def test_the_check_that_it_advises_is_of_the_same_cluster_and_the_same_allocator(
    podtide: Run, tmp_path: Path
) -> None:
    database = f"sqlite:///{tmp_path / 'subnets.db'}"
    make_database(database)
    with served(draw_stray, tmp_path) as kubeconfig:
        where = ("--kubeconfig", str(kubeconfig), "--database", database)
        answer = podtide("why", "stray", *where)
    assert f"check {' '.join(where)}`" in answer.out.splitlines()[0]


def make_database(url: str, subnet: str = "pods") -> None:
    """A database with a subnet, of which everything is taken."""

    async def make() -> None:
        async with await open_allocator(url, clock=LoopClock(), migrate=True) as allocator:
            await allocator.add_subnet(SubnetSpec(network="blue", name=subnet, cidrs=("10.1.0.0/29",)))
            everything = Wish(
                id="b",
                network="blue",
                subnet=subnet,
                cluster="east",
                node="b",
                request_uid="r",
                generation=1,
                count=20,
            )
            await allocator.put_container(everything)

    asyncio.run(make())
