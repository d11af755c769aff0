"""`podtide subnet` on a database and on a running allocator: the same answers, and errors of one line."""

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from allocator.contract.harness import a_wish
from allocator.service.running import open_store, served
from cli.conftest import Run
from podtide.allocator.store import open_allocator
from podtide.runtime.clock import SystemClock

Where = tuple[str, str]


@pytest.fixture(params=["--database", "--allocator"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Where]:
    """The option that says where the subnets are, with its value."""
    if request.param == "--database":
        url = f"sqlite:///{tmp_path / 'subnets.db'}"
        asyncio.run(migrated(url))
        yield "--database", url
        return
    started, stopped = threading.Event(), threading.Event()
    urls: list[str] = []

    async def serve() -> None:
        async with await open_store() as store, served(store) as url:
            urls.append(url)
            started.set()
            await asyncio.to_thread(stopped.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    started.wait(20)
    yield "--allocator", urls[0]
    stopped.set()
    thread.join()


async def migrated(url: str) -> None:
    async with await open_allocator(url, clock=SystemClock(), migrate=True):
        pass


def test_of_a_wide_ipv6_subnet_it_is_said_what_there_is_and_what_is_used(podtide: Run, where: Where) -> None:
    sentence = "blue/six has 2^64 addresses in fd00::/64, of which the first 2^53 are used, gateway fd00::1"
    assert podtide("subnet", "add", "blue", "six", "fd00::/64", *where).out == f"{sentence}\n"
    assert podtide("subnet", "list", *where).out.splitlines() == [
        "NETWORK  NAME  CIDRS      CAPACITY  RESERVED  FREE   CONTAINERS  OWED",
        "blue     six   fd00::/64  ~2^53     0         ~2^53  0           0",
    ]
    assert podtide("subnet", "show", "blue", "six", *where).out.splitlines() == [
        sentence,
        "  reserved 0 (0 %), free ~2^53, containers 0",
        "  held 0 by nodes, quarantined 0, owed 0",
    ]


def test_a_subnet_is_added_listed_shown_grown_and_removed(podtide: Run, where: Where) -> None:
    added = podtide("subnet", "add", "blue", "pods", "10.1.0.0/28", "--keep-back-first", "2", *where)
    assert added.out == "blue/pods has 11 addresses in 10.1.0.0/28, gateway 10.1.0.1\n"
    assert podtide("subnet", "list", *where).out.splitlines() == [
        "NETWORK  NAME  CIDRS        CAPACITY  RESERVED  FREE  CONTAINERS  OWED",
        "blue     pods  10.1.0.0/28  11        0         11    0           0",
    ]
    grown = podtide("subnet", "grow", "blue", "pods", "10.2.0.0/29", *where)
    assert (
        grown.out
        == "blue/pods has 16 addresses in 10.1.0.0/28, gateway 10.1.0.1; 10.2.0.0/29, gateway 10.2.0.1\n"
    )
    assert podtide("subnet", "show", "blue", "pods", *where).out.splitlines() == [
        "blue/pods has 16 addresses in 10.1.0.0/28, gateway 10.1.0.1; 10.2.0.0/29, gateway 10.2.0.1",
        "  reserved 0 (0 %), free 16, containers 0",
        "  held 0 by nodes, quarantined 0, owed 0",
        "  kept back the first 2",
    ]
    assert podtide("subnet", "remove", "blue", "pods", *where).out == "blue/pods is removed\n"
    assert podtide("subnet", "list", *where, "-o", "json").out == "[]\n"


def test_json_is_the_allocators_own(podtide: Run, where: Where) -> None:
    added = json.loads(podtide("subnet", "add", "blue", "pods", "10.1.0.0/28", *where, "-o", "json").out)
    assert (added["capacity"], added["gateways"]) == (13, ["10.1.0.1"])
    shown = json.loads(podtide("subnet", "show", "blue", "pods", *where, "-o", "json").out)
    assert shown["subnet"] == added
    assert [shown[key] for key in ("held", "quarantined", "owed", "draining", "holders")] == [
        0,
        0,
        [],
        [],
        [],
    ]


def test_who_is_owed_is_shown(podtide: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'subnets.db'}"
    asyncio.run(migrated(url))
    podtide("subnet", "add", "blue", "pods", "10.1.0.0/29", "--database", url)

    async def wish() -> None:
        async with await open_allocator(url, clock=SystemClock()) as store:
            await store.put_container(a_wish("a", 10, waiting_pods=4))

    asyncio.run(wish())
    shown = podtide("subnet", "show", "blue", "pods", "--database", url).out.splitlines()
    assert shown[1:] == [
        "  reserved 5 (100 %), free 0, containers 1",
        "  held 5 by nodes, quarantined 0, owed 6",
        "  owes 6 to node-a of east, where 4 pods wait",
        "",
        "NODE    CLUSTER  HELD  WANTED  OWED",
        "node-a  east     4     10      6",
    ]


def test_what_is_in_quarantine_and_the_nodes_that_hold_most_are_shown(podtide: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'subnets.db'}"
    asyncio.run(migrated(url))
    podtide("subnet", "add", "blue", "pods", "10.1.0.0/24", "--database", url)

    async def wish() -> None:
        async with await open_allocator(url, clock=SystemClock()) as store:
            for number in range(12):
                await store.put_container(a_wish(f"n{number:02}", number))
            await store.delete_container("n03", cluster="east")

    asyncio.run(wish())
    shown = podtide("subnet", "show", "blue", "pods", "--database", url).out.splitlines()
    wide = podtide("subnet", "show", "blue", "pods", "--database", url, "-o", "wide").out.splitlines()
    assert shown[2] == "  held 74 by nodes, quarantined 4, owed 0"
    assert [line.split()[:3] for line in shown[5:7]] == [
        ["node-n11", "east", "11"],
        ["node-n10", "east", "10"],
    ]
    assert shown[-1] == "and 1 node holds no more than these; all of them with `-o wide`"
    assert wide[-1].split() == ["node-n00", "east", "0", "0", "0", "10.1.0.2", "n00"]


def test_a_cidr_is_shrunk_and_it_is_said_who_holds_it_up(podtide: Run, tmp_path: Path) -> None:
    where = ("--database", f"sqlite:///{tmp_path / 'subnets.db'}")
    asyncio.run(migrated(where[1]))
    podtide("subnet", "add", "blue", "pods", "10.1.0.0/29", *where)
    podtide("subnet", "grow", "blue", "pods", "10.2.0.0/29", "--gateway", "10.2.0.6", *where)

    async def wish() -> None:
        async with await open_allocator(where[1], clock=SystemClock()) as store:
            await store.put_container(a_wish("a", 5))
            await store.put_container(a_wish("b", 0))
            await store.put_container(a_wish("gone", 0))
            await store.delete_container("gone", cluster="east")

    asyncio.run(wish())
    refused = podtide("subnet", "shrink", "blue", "pods", "10.1.0.0/29", "--now", *where)
    assert (refused.status, refused.out) == (2, "")
    assert "node node-a of east has its primary address and 4 for pods" in refused.err
    draining = [
        "blue/pods has 10 addresses in 10.1.0.0/29, gateway 10.1.0.1, draining; 10.2.0.0/29, gateway 10.2.0.6",
        "  the CIDRs that stay have 5 addresses, and 8 are reserved: nodes will be short unless the subnet grows or pods go",
        "  10.1.0.0/29 drains: 5 addresses are still reserved, and it leaves when none is",
        "    node-a of east has its primary address and 4 for pods",
        (
            "    an address on a pod stays until the pod is deleted; a primary address until its node asks for another, as "
            "podtide's agents do, or is replaced"
        ),
    ]
    assert podtide("subnet", "shrink", "blue", "pods", "10.1.0.0/29", *where).out.splitlines() == draining
    shown = podtide("subnet", "show", "blue", "pods", *where).out.splitlines()
    assert [line for line in shown if line in draining] == draining
    ended = podtide("subnet", "shrink", "blue", "pods", "10.1.0.0/29", "--cancel", *where)
    assert (
        ended.out
        == "blue/pods has 10 addresses in 10.1.0.0/29, gateway 10.1.0.1; 10.2.0.0/29, gateway 10.2.0.6\n"
    )
    podtide("subnet", "shrink", "blue", "pods", "10.2.0.0/29", *where)
    shown = podtide("subnet", "show", "blue", "pods", *where).out.splitlines()
    assert "    removed nodes had 1, which are in quarantine until it ends" in shown
    both = podtide("subnet", "shrink", "blue", "pods", "10.1.0.0/29", "--cancel", "--now", *where)
    assert both.status == 2


def test_a_refusal_is_one_line(podtide: Run, where: Where) -> None:
    podtide("subnet", "add", "blue", "pods", "10.1.0.0/28", *where)
    for arguments, words in (
        (("show", "blue", "none"), "none"),
        (("add", "blue", "more", "10.1.0.0/29"), "overlap"),
        (("add", "blue", "more", "10.9.0.0/33"), "10.9.0.0/33"),
        (("add", "blü", "more", "10.9.0.0/24"), "is not a valid name"),
    ):
        outcome = podtide("subnet", *arguments, *where)
        assert (outcome.status, outcome.out) == (2, "")
        assert words in outcome.err
        assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "say where the subnets are"),
        (("--allocator", "http://x", "--database", "sqlite:///x"), "say where the subnets are"),
        (("--database", "sqlite:///x", "--token-file", "/dev/null"), "are for --allocator"),
        (("--database", "mysql://x"), "'mysql' is refused"),
        (("--allocator", "x"), "is not a valid URL of an allocator"),
        (
            ("--allocator", "http://127.0.0.1:1", "--token-file", "/none"),
            "'--token-file': the file /none does not exist",
        ),
    ],
)
def test_what_names_no_allocator_is_refused(podtide: Run, arguments: tuple[str, ...], words: str) -> None:
    outcome = podtide("subnet", "list", *arguments)
    assert (outcome.status, outcome.out) == (2, "")
    assert words in outcome.err


def test_a_database_without_a_schema_says_what_makes_one(podtide: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    outcome = podtide("subnet", "list", "--database", f"sqlite:///{tmp_path / 'empty.db'}")
    assert "start `podtide allocator` on it" in outcome.err


def test_nobody_there_is_a_failure_and_not_bad_input(podtide: Run) -> None:
    outcome = podtide("subnet", "list", "--allocator", "http://127.0.0.1:1")
    assert outcome.status == 1
    assert "http://127.0.0.1:1 cannot be reached" in outcome.err


def test_a_cidr_that_the_subnet_does_not_have_is_not_shrunk_in_silence(podtide: Run, where: Where) -> None:
    podtide("subnet", "add", "blue", "pods", "10.1.0.0/29", "10.2.0.0/29", *where)
    refused = podtide("subnet", "shrink", "blue", "pods", "10.3.0.0/29", *where)
    assert (refused.status, refused.out) == (2, "")
    assert (
        refused.err == "podtide: subnet blue/pods has no CIDR 10.3.0.0/29: it has 10.1.0.0/29, 10.2.0.0/29\n"
    )


@pytest.mark.parametrize("change", ["grow", "shrink"])
def test_a_cidr_with_host_bits_is_refused_alike(podtide: Run, where: Where, change: str) -> None:
    podtide("subnet", "add", "blue", "pods", "10.1.0.0/29", "10.2.0.0/29", *where)
    refused = podtide("subnet", change, "blue", "pods", "10.2.0.1/29", *where)
    assert (refused.status, refused.out) == (2, "")
    assert refused.err.endswith("10.2.0.1/29 is not the first address of its network: write 10.2.0.0/29\n")


def test_a_subnet_that_a_file_states_gets_what_it_lacks_and_keeps_what_people_gave_it(
    podtide: Run, where: Where
) -> None:
    def state(*cidrs: str) -> str:
        return podtide("subnet", "add", "blue", "pods", *cidrs, "--grow", *where).out

    first = "10.1.0.0/28, gateway 10.1.0.1"
    assert state("10.1.0.0/28") == f"blue/pods has 13 addresses in {first}\n"
    podtide("subnet", "grow", "blue", "pods", "10.2.0.0/29", *where)
    both = f"blue/pods has 18 addresses in {first}; 10.2.0.0/29, gateway 10.2.0.1"
    assert state("10.1.0.0/28") == f"{both}\n"
    more = state("10.3.0.0/29", "10.1.0.0/28", "--gateway", "10.3.0.6")
    assert more == f"{both.replace('18', '23')}; 10.3.0.0/29, gateway 10.3.0.6\n"
    assert state("10.3.0.0/29", "10.1.0.0/28", "--gateway", "10.3.0.6") == more, "again it changes nothing"
    assert "gateway 10.3.0.5" in state("10.3.0.0/29", "--gateway", "10.3.0.5")


def test_what_a_file_states_starts_no_cidr_again_that_drains(podtide: Run, tmp_path: Path) -> None:
    where = ("--database", f"sqlite:///{tmp_path / 'subnets.db'}")
    asyncio.run(migrated(where[1]))
    podtide("subnet", "add", "blue", "pods", "10.1.0.0/28", "10.2.0.0/29", *where)

    async def wish() -> None:
        async with await open_allocator(where[1], clock=SystemClock()) as store:
            await store.put_container(a_wish("a", 5))

    asyncio.run(wish())
    podtide("subnet", "shrink", "blue", "pods", "10.1.0.0/28", *where)
    stated = ("10.2.0.0/29", "10.1.0.0/28", "10.3.0.0/29", "--gateway", "10.1.0.9")
    grown = podtide("subnet", "add", "blue", "pods", *stated, "--grow", *where).out
    assert "10.1.0.0/28, gateway 10.1.0.1, draining" in grown
    assert "10.3.0.0/29" in grown


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("pods", "10.1.0.0/28", "--keep-back-first", "2"), "1 + 0 addresses kept back"),
        (("others", "10.1.0.0/29"), "overlaps 10.1.0.0/28 of subnet pods"),
    ],
)
def test_what_cannot_be_grown_is_refused_as_without_it(
    podtide: Run, where: Where, asked: tuple[str, ...], words: str
) -> None:
    podtide("subnet", "add", "blue", "pods", "10.1.0.0/28", "--keep-back", "10.1.0.7", *where)
    refused = podtide("subnet", "add", "blue", *asked, "--grow", *where)
    assert refused.status
    assert words in refused.err


def test_an_allocator_that_does_not_answer_is_waited_for_as_long_as_is_said(podtide: Run) -> None:
    nobody = ("subnet", "add", "blue", "pods", "10.1.0.0/28", "--allocator", "http://127.0.0.1:1")
    assert "(asked once)" in podtide(*nobody, "--wait", "1ms").err
    patient = podtide(*nobody, "--wait", "1s")
    assert patient.status
    assert re.search(r"\(asked \d+ times\)", patient.err)


def test_a_database_is_not_waited_for(podtide: Run, tmp_path: Path) -> None:
    where = ("--database", f"sqlite:///{tmp_path / 'subnets.db'}")
    refused = podtide("subnet", "add", "blue", "pods", "10.1.0.0/28", "--wait", "5m", *where)
    assert (refused.status, refused.err.count("--wait is for --allocator")) == (2, 1)
