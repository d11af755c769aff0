"""The six verbs in every version, and that nothing that goes wrong is ever more than a CNI error."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.calling import SANDBOX, Journal, NoNotes, answer_to, code, config, environment
from agent.pool_addresses import PoolAddresses
from podtide.agent.api.cni_calls import CniCalls, PendingCall
from podtide.agent.api.plugin_protocol import Answer
from podtide.agent.port import Stopping
from podtide.cni.versions import SUPPORTED, at_least
from podtide.core.errors import StopError
from podtide.runtime import virtual_time
from podtide.runtime.clock import LoopClock


class Node:
    """The verbs, on a pool with the given addresses."""

    def __init__(self, *ips: str, wait_seconds: float = 10.0) -> None:
        self.clock = LoopClock()
        self.addresses = PoolAddresses(self.clock, wait_seconds)
        self.addresses.grant(*ips)
        self.journal = Journal()
        self.counted: list[tuple[str, str, float]] = []
        self.calls = CniCalls(
            self.addresses, NoNotes(), clock=self.clock, log=self.journal.log, count=self._count
        )

    async def call(self, verb: str, stdin: bytes | None = None, **variables: str) -> Answer:
        stdin = config() if stdin is None else stdin
        return await answer_to(
            self.calls, environment(verb, **variables), stdin, arrived=self.clock.monotonic()
        )

    async def add(self, stdin: bytes | None = None, **variables: str) -> dict[str, Any]:
        answer = await self.call("ADD", stdin, **variables)
        assert answer.exit_status == 0, answer.output
        document: dict[str, Any] = json.loads(answer.output)
        return document

    def _count(self, verb: str, outcome: str, seconds: float) -> None:
        self.counted.append((verb, outcome, seconds))


DONE = Answer(0)


@pytest.mark.parametrize("version", SUPPORTED)
async def test_an_add_is_answered_in_the_callers_version(version: str) -> None:
    node = Node("10.1.0.5", "fd00::5")
    document = await node.add(config(version, {"routes": [{"dst": "0.0.0.0/0"}], "dns": {"domain": "x"}}))
    assert document.pop("cniVersion") == version
    assert document.pop("dns") == {"domain": "x"}
    if not at_least(version, "0.3.0"):
        assert document == {
            "ip4": {"ip": "10.1.0.5/16", "gateway": "10.1.0.1", "routes": [{"dst": "0.0.0.0/0"}]},
            "ip6": {"ip": "fd00::5/64", "gateway": "fd00::1"},
        }
        return
    families: list[dict[str, str]] = (
        [{}, {}] if at_least(version, "1.0.0") else [{"version": "4"}, {"version": "6"}]
    )
    assert document == {
        "ips": [
            families[0] | {"address": "10.1.0.5/16", "gateway": "10.1.0.1"},
            families[1] | {"address": "fd00::5/64", "gateway": "fd00::1"},
        ],
        "routes": [{"dst": "0.0.0.0/0"}],
    }


@pytest.mark.parametrize("version", SUPPORTED)
async def test_a_del_lets_go_in_every_version(version: str) -> None:
    node = Node("10.1.0.5")
    await node.add(config(version))
    assert await node.call("DEL", config(version)) == DONE
    assert node.addresses.held() == {}


@pytest.mark.parametrize("version", SUPPORTED)
async def test_check_confirms_what_add_gave_where_the_version_has_it(version: str) -> None:
    node = Node("10.1.0.5")
    result = await node.add(config(version))
    answer = await node.call("CHECK", config(version, prevResult=result))
    if at_least(version, "0.4.0"):
        assert answer == DONE
    else:
        assert code(answer) == 1


@pytest.mark.parametrize("version", SUPPORTED)
@pytest.mark.parametrize("verb", ["STATUS", "GC"])
async def test_status_and_gc_came_with_the_latest_version(version: str, verb: str) -> None:
    node = Node("10.1.0.5")
    answer = await node.call(verb, config(version, alive=[]))
    if version == "1.1.0":
        assert answer == DONE
    else:
        assert code(answer) == 1


@pytest.mark.parametrize("version", [*SUPPORTED, ""])
async def test_version_says_what_is_spoken(version: str) -> None:
    answer = await Node().call("VERSION", json.dumps({"cniVersion": version}).encode())
    assert json.loads(answer.output) == {
        "cniVersion": version or "1.1.0",
        "supportedVersions": list(SUPPORTED),
    }


async def test_version_needs_no_configuration() -> None:
    assert json.loads((await Node().call("VERSION", b"")).output)["cniVersion"] == "1.1.0"


async def test_the_same_add_again_gets_the_same_address() -> None:
    node = Node("10.1.0.5", "10.1.0.6")
    assert await node.add() == await node.add()
    assert len(node.addresses.held()) == 1


async def test_an_address_that_is_given_again_is_answered_in_the_words_of_its_new_network() -> None:
    node = Node("10.1.0.5")
    for domain in ("one", "other"):
        for version in ("0.4.0", "1.1.0"):
            stdin = config(version, {"dns": {"domain": domain}})
            document = await node.add(stdin)
            assert (document["cniVersion"], document["dns"]) == (version, {"domain": domain})
            assert document["ips"][0]["address"] == "10.1.0.5/16"
            await node.call("DEL", stdin)


async def test_two_adds_of_one_sandbox_at_once_get_one_address() -> None:
    node = Node()
    adds = [asyncio.create_task(node.add()) for _ in range(2)]
    await asyncio.sleep(1)
    node.addresses.grant("10.1.0.5", "10.1.0.6")
    first, second = await asyncio.gather(*adds)
    assert first == second
    assert node.addresses.held() == {(SANDBOX, "eth0"): ["10.1.0.5"]}


async def test_two_interfaces_of_one_sandbox_get_two_addresses() -> None:
    node = Node("10.1.0.5", "10.1.0.6")
    await node.add()
    await node.add(ifname="eth1")
    assert sorted(node.addresses.held().values()) == [["10.1.0.5"], ["10.1.0.6"]]


async def test_static_addresses_follow_the_pools() -> None:
    node = Node("10.1.0.5")
    ipam = {"addresses": [{"address": "192.168.1.7/24", "gateway": "192.168.1.1"}]}
    result = await node.add(config(ipam=ipam), CNI_ARGS="IgnoreUnknown=1;IP=172.16.0.9/24;GATEWAY=172.16.0.1")
    assert result["ips"] == [
        {"address": "10.1.0.5/16", "gateway": "10.1.0.1"},
        {"address": "192.168.1.7/24", "gateway": "192.168.1.1"},
        {"address": "172.16.0.9/24", "gateway": "172.16.0.1"},
    ]


async def test_an_owner_is_known_by_all_the_runtime_says_of_it() -> None:
    node = Node("10.1.0.5")
    await node.add()
    ((address, *_),) = node.addresses.pool.owners().values()
    assert address.owner is not None
    assert (address.owner.pod, address.owner.namespace, address.owner.name) == ("uid-1", "shop", "web-1")
    assert (address.owner.network, address.owner.interface) == ("pods", "eth0")


async def test_an_add_waits_for_the_address_on_its_way() -> None:
    node = Node()
    adding = asyncio.create_task(node.add())
    await asyncio.sleep(9)
    node.addresses.grant("10.1.0.5")
    assert (await adding)["ips"] == [{"address": "10.1.0.5/16", "gateway": "10.1.0.1"}]
    assert node.counted == [("ADD", "ok", 9.0)]


async def test_an_add_without_an_address_fails_with_try_again_later() -> None:
    node = Node()
    assert code(await node.call("ADD")) == 11
    assert node.counted == [("ADD", "NoAddress", 10.0)]


async def test_an_add_that_is_given_nothing_is_a_failure() -> None:
    node = Node("10.1.0.5")

    def nothing(*_: object, **__: object) -> tuple[()]:
        return ()

    node.addresses.start_add = nothing  # type: ignore[method-assign]  # an `Addresses` that breaks its word
    assert code(await node.call("ADD")) == 11


async def test_a_del_ends_an_add_that_waits() -> None:
    node = Node()
    adding = asyncio.create_task(node.call("ADD"))
    await asyncio.sleep(1)
    assert await node.call("DEL") == DONE
    assert code(await adding) == 11
    node.addresses.grant("10.1.0.5")
    assert node.addresses.held() == {}


async def test_an_add_nobody_waits_for_takes_nothing_later() -> None:
    node = Node()
    adding = asyncio.create_task(node.call("ADD"))
    await asyncio.sleep(1)
    adding.cancel()
    await asyncio.sleep(0)
    node.addresses.grant("10.1.0.5")
    await asyncio.sleep(20)
    assert node.addresses.held() == {}
    assert node.counted == [("ADD", "abandoned", 1.0)]


async def test_del_of_what_is_not_known_succeeds() -> None:
    assert await Node("10.1.0.5").call("DEL") == DONE


async def test_del_succeeds_whatever_has_become_of_the_configuration() -> None:
    node = Node("10.1.0.5")
    await node.add()
    assert await node.call("DEL", config(ipam={"type": "host-local", "routes": 7})) == DONE
    assert node.addresses.held() == {}


async def test_del_needs_no_network_namespace() -> None:
    assert await Node().call("DEL", CNI_NETNS="") == DONE


async def test_check_of_what_was_never_added_is_an_unknown_container() -> None:
    assert code(await Node("10.1.0.5").call("CHECK", config(prevResult={"ips": []}))) == 3


async def test_check_refuses_the_answer_to_another_add() -> None:
    node = Node("10.1.0.5")
    await node.add()
    other = {"ips": [{"address": "10.1.0.6/16"}]}
    assert code(await node.call("CHECK", config(prevResult=other))) == 100


async def test_check_lets_plugins_later_in_the_chain_add_addresses() -> None:
    node = Node("10.1.0.5")
    result = await node.add()
    result["ips"].append({"address": "192.168.9.9/24"})
    assert await node.call("CHECK", config(prevResult=result)) == DONE


async def test_check_without_the_answer_to_check_is_an_invalid_configuration() -> None:
    assert code(await Node("10.1.0.5").call("CHECK")) == 7


async def test_status_says_not_available_only_while_the_agent_is_not_ready() -> None:
    node = Node()
    assert await node.call("STATUS") == DONE, "a full pool is not a failure of the node"
    node.addresses.ready = False
    assert code(await node.call("STATUS")) == 50


async def test_gc_frees_what_is_not_alive_in_its_network_alone() -> None:
    node = Node("10.1.0.5", "10.1.0.6", "10.1.0.7")
    await node.add(sandbox="alive")
    await node.add(sandbox="dead")
    await node.add(config(name="other"), sandbox="elsewhere")
    alive = [{"containerID": "alive", "ifname": "eth0"}]
    assert await node.call("GC", config(alive=alive)) == DONE
    assert set(node.addresses.held()) == {("alive", "eth0"), ("elsewhere", "eth0")}


@pytest.mark.parametrize(
    "stdin",
    [
        config(),
        config(name=None, alive=[]),
        config(name="", alive=[]),
    ],
    ids=["no list of what lives", "no name", "empty name"],
)
async def test_gc_that_does_not_say_of_what_frees_nothing(stdin: bytes) -> None:
    node = Node("10.1.0.5")
    await node.add()
    assert code(await node.call("GC", stdin)) == 7
    assert node.addresses.held()


RANGED = config(ipam={"type": "whereabouts", "range": "192.168.0.0/24"})


@pytest.mark.parametrize("verb", ["ADD", "CHECK", "STATUS"])
async def test_a_network_with_a_range_of_its_own_is_refused(verb: str) -> None:
    node = Node("10.1.0.5")
    answer = await node.call(verb, RANGED)
    assert code(answer) == 7
    assert b"serves the node's pool alone" in answer.output
    assert node.addresses.held() == {}


@pytest.mark.parametrize("verb", ["DEL", "GC"])
async def test_what_a_refused_network_never_had_can_be_taken_away(verb: str) -> None:
    node = Node("10.1.0.5")
    await node.add()
    document = json.loads(RANGED) | {"cni.dev/valid-attachments": []}
    assert await node.call(verb, json.dumps(document).encode(), ifname="net1") == DONE
    assert node.addresses.held()


@pytest.mark.parametrize(
    ("variables", "stdin", "expected"),
    [
        ({"CNI_COMMAND": ""}, None, 4),
        ({"CNI_COMMAND": "UPDATE"}, None, 4),
        ({"CNI_CONTAINERID": ""}, None, 4),
        ({"CNI_CONTAINERID": "../x"}, None, 4),
        ({"CNI_IFNAME": "a/b"}, None, 4),
        ({"CNI_NETNS": ""}, None, 4),
        ({"CNI_ARGS": "K8S_POD_NAME"}, None, 4),
        ({"CNI_ARGS": "IgnoreUnknown=1;IP=many"}, None, 4),
        ({}, b"", 6),
        ({}, b"{", 6),
        ({}, b"[]", 6),
        ({}, b"\xff\xfe", 6),
        ({}, b"[" * 100_000, 6),
        ({}, b'{"ipam": 7}', 7),
        ({}, b"{}", 7),
        ({}, config(ipam={"type": "host-local"}), 7),
        ({}, config(ipam={"gateway": "nowhere"}), 7),
        ({}, config("9.9.9"), 1),
    ],
    ids=repr,
)
async def test_what_cannot_be_asked_is_refused_by_its_code_and_takes_nothing(
    variables: dict[str, str], stdin: bytes | None, expected: int
) -> None:
    node = Node("10.1.0.5")
    assert code(await node.call("ADD", stdin, **variables)) == expected
    assert node.addresses.held() == {}


@pytest.mark.parametrize(
    ("stdin", "version"),
    [
        (config("0.3.1", {"type": "x"}), "0.3.1"),
        (config("9.9.9"), "1.1.0"),
        (b"{", "1.1.0"),
        (b"{}", "1.1.0"),
    ],
    ids=repr,
)
async def test_an_error_is_said_in_the_callers_version_where_that_is_known(
    stdin: bytes, version: str
) -> None:
    assert json.loads((await Node().call("ADD", stdin)).output)["cniVersion"] == version


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RuntimeError("one\ntwo"), 102),
        (RuntimeError(), 102),
        (StopError("broken: stop"), 101),
        (OSError(5, "I/O"), 5),
    ],
)
@pytest.mark.parametrize("verb", ["ADD", "DEL"])
async def test_what_nobody_foresaw_is_one_line_and_its_traceback_is_in_the_log(
    verb: str, error: Exception, expected: int
) -> None:
    node = Node("10.1.0.5")
    node.addresses.broken = error
    assert code(await node.call(verb)) == expected
    (line,) = node.journal.lines()
    assert line["level"] == "error"
    assert "Traceback" in line["exception"]


async def test_every_call_leaves_one_line_with_all_there_is_to_say() -> None:
    node = Node("10.1.0.5")
    await node.add()
    (line,) = node.journal.lines()
    del line["at"]
    assert line == {
        "event": "call",
        "level": "info",
        "api": "cni",
        "verb": "ADD",
        "outcome": "ok",
        "milliseconds": 0.0,
        "pod": "web-1",
        "namespace": "shop",
        "sandbox": SANDBOX,
        "ifname": "eth0",
        "addresses": ["10.1.0.5"],
    }


async def test_a_refusal_says_why_in_its_line() -> None:
    node = Node()
    await node.call("ADD")
    (line,) = node.journal.lines()
    assert (line["level"], line["outcome"], line["error"]) == (
        "warning",
        "NoAddress",
        "no address became free: wait",
    )


@given(
    variables=st.dictionaries(
        st.sampled_from(
            ["CNI_COMMAND", "CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH", "CNI_ARGS"]
        ),
        st.sampled_from(["", "ADD", "DEL", "CHECK", "STATUS", "GC", "VERSION"]) | st.text(max_size=20),
    ),
    stdin=st.binary(max_size=50)
    | st.recursive(
        st.none() | st.booleans() | st.text(max_size=5) | st.integers(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "cniVersion",
                        "name",
                        "ipam",
                        "type",
                        "range",
                        "prevResult",
                        "ips",
                        "cni.dev/valid-attachments",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=8,
    ).map(lambda document: json.dumps(document).encode()),
)
def test_whatever_is_asked_is_answered_in_the_runtimes_own_words(
    variables: dict[str, str], stdin: bytes
) -> None:
    async def ask() -> Answer:
        node = Node("10.1.0.5")
        return await answer_to(node.calls, variables, stdin, arrived=0.0)

    answer = virtual_time.run(ask())
    if answer.exit_status:
        assert code(answer) not in {5, 101, 102}
    elif answer.output:
        json.loads(answer.output)


async def test_what_needs_no_wait_is_answered_at_once_and_written_down_after() -> None:
    node = Node("10.1.0.5")
    given: list[tuple[Answer, int]] = []

    def start(verb: str) -> PendingCall | None:
        return node.calls.start(
            environment(verb),
            config(),
            arrived=node.clock.monotonic(),
            respond=lambda answer: given.append((answer, len(node.counted))),
        )

    for verb in ("ADD", "CHECK", "DEL", "STATUS", "VERSION", "NONSENSE"):
        assert start(verb) is None
    assert [answer.exit_status for answer, _ in given] == [0, 1, 0, 0, 0, 1]
    assert [written_before for _, written_before in given] == [0, 1, 2, 3, 4, 5]


async def test_an_add_that_has_to_wait_is_started_once_and_answered_later() -> None:
    node = Node()
    given: list[Answer] = []
    pending = node.calls.start(environment("ADD"), config(), arrived=0.0, respond=given.append)
    assert pending is not None
    assert (given, node.counted, node.journal.lines()) == ([], [], [])
    node.addresses.grant("10.1.0.5")
    assert (await pending.answer()).exit_status == 0
    pending.abandon()
    assert node.addresses.started == 1
    assert [(verb, outcome) for verb, outcome, _ in node.counted] == [("ADD", "ok")]


async def test_a_call_that_waits_and_is_abandoned_before_anybody_awaits_it_is_counted_once() -> None:
    node = Node()
    pending = node.calls.start(environment("ADD"), config(), arrived=0.0, respond=lambda _answer: None)
    assert pending is not None
    pending.abandon()
    pending.abandon()
    assert [(verb, outcome) for verb, outcome, _ in node.counted] == [("ADD", "abandoned")]


async def test_a_call_that_may_not_wait_is_answered_and_counted_by_its_error() -> None:
    node = Node()
    pending = node.calls.start(environment("ADD"), config(), arrived=0.0, respond=lambda _answer: None)
    assert pending is not None
    assert code(pending.fail(Stopping("the agent stops: try again"))) == 11
    pending.abandon()
    assert [(verb, outcome) for verb, outcome, _ in node.counted] == [("ADD", "Stopping")]
