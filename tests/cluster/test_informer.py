import asyncio
import io
import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from cluster.faulty_cluster import CloseWatch, Faults, FaultyCluster, Script, Step
from examples import examples
from podtide.cluster.embedded import ApiServerLimits, EmbeddedCluster
from podtide.cluster.informer import Informer, Scope
from podtide.cluster.object_cache import ObjectCache
from podtide.cluster.port import (
    Change,
    ClusterError,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Throttled,
    Unavailable,
    WatchEvent,
)
from podtide.core.errors import StopError
from podtide.resources.base import Key, ObjectMeta
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.node import Node
from podtide.resources.pod import Pod, PodSpec
from podtide.runtime import virtual_time
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import seeded_randomness
from podtide.runtime.runtime import Runtime

Told = tuple[Lease | None, Lease | None]


def lease(name: str) -> Lease:
    return Lease(metadata=ObjectMeta(name=name, namespace="default"))


def key(name: str) -> Key:
    return Key("default", name)


class Bench:
    """An informer of Leases on an embedded cluster, with faults in between and one handler that remembers."""

    def __init__(
        self,
        faults: Faults | None = None,
        limits: ApiServerLimits | None = None,
        scope: Scope | None = None,
        *,
        can_do_without: bool = False,
    ) -> None:
        self.clock = LoopClock()
        self.server = EmbeddedCluster(
            clock=self.clock,
            randomness=seeded_randomness(1),
            limits=limits or ApiServerLimits(bookmark_seconds=60.0),
        )
        self.cluster = FaultyCluster(self.server, faults or Script())
        self.lines = io.StringIO()
        self.informer = Informer(
            self.cluster,
            Lease,
            scope or Scope(namespace="default"),
            runtime=Runtime(
                clock=self.clock, randomness=seeded_randomness(2), log=make_logger(self.lines, self.clock)
            ),
            can_do_without=can_do_without,
        )
        self.told: list[Told] = []
        self.informer.add_handler(lambda old, new: self.told.append((old, new)))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The informer runs and is synced."""
        task = asyncio.create_task(self.informer.run())
        await self.informer.synced.wait()
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def create(self, name: str) -> Lease:
        return await self.server.create(lease(name), manager="test")

    async def change(self, name: str, holder: str) -> Lease:
        there = await self.server.get(Lease, name, "default")
        spec = structs.replace(there.spec, holder_identity=holder)
        return await self.server.replace(structs.replace(there, spec=spec), manager="test")

    async def delete(self, name: str) -> None:
        await self.server.delete(Lease, name, "default")

    def log(self, level: str) -> list[dict[str, Any]]:
        records = [json.loads(line) for line in self.lines.getvalue().splitlines()]
        return [record for record in records if record["level"] == level]


def names(told: list[Told]) -> list[tuple[str | None, str | None]]:
    return [(old.metadata.name if old else None, new.metadata.name if new else None) for old, new in told]


async def test_it_is_synced_when_handlers_were_told_of_everything_there_was() -> None:
    bench = Bench()
    await bench.create("a")
    await bench.create("b")
    assert not bench.informer.synced.is_set()
    async with bench.running():
        assert names(bench.told) == [(None, "a"), (None, "b")]
        assert [item.metadata.name for item in bench.informer.items()] == ["a", "b"]


async def test_handlers_are_told_of_changes_in_order_with_old_and_new() -> None:
    bench = Bench()
    async with bench.running():
        made = await bench.create("a")
        changed = await bench.change("a", "me")
        await bench.delete("a")
        await asyncio.sleep(1)
    assert bench.told == [(None, made), (made, changed), (changed, None)]
    assert bench.informer.items() == []


async def test_reads_come_from_the_copy_and_make_no_call() -> None:
    bench = Bench()
    made = await bench.create("a")
    async with bench.running():
        calls = bench.cluster.calls.total()
        assert bench.informer.get(key("a")) == made
        assert bench.informer.get(key("b")) is None
        assert bench.cluster.calls.total() == calls


async def test_a_handler_reads_what_it_is_told_of() -> None:
    bench = Bench()
    read: list[Lease | None] = []
    bench.informer.add_handler(lambda _old, new: read.append(bench.informer.get(new.key) if new else None))
    made = await bench.create("a")
    async with bench.running():
        await bench.delete("a")
        await asyncio.sleep(1)
    assert read == [made, None]


async def test_a_long_list_is_read_in_pages_and_told_once_it_is_whole() -> None:
    bench = Bench()
    for number in range(1001):
        await bench.create(f"lease-{number:04}")
    async with bench.running():
        assert bench.cluster.calls["list"] == 3
        assert len(bench.told) == len(bench.informer.items()) == 1001


async def test_only_what_is_in_scope_is_copied() -> None:
    bench = Bench()
    for name, node in (("a", "node-1"), ("b", "node-2")):
        pod = Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=PodSpec(node_name=node))
        await bench.server.create(pod, manager="test")
    informer = Informer(
        bench.cluster,
        Pod,
        Scope(fields="spec.nodeName=node-1"),
        runtime=Runtime(
            clock=bench.clock, randomness=seeded_randomness(2), log=make_logger(bench.lines, bench.clock)
        ),
    )
    running = asyncio.create_task(informer.run())
    await informer.synced.wait()
    assert [pod.metadata.name for pod in informer.items()] == ["a"]
    running.cancel()


async def test_a_watch_that_ends_is_resumed_at_once_and_nothing_is_listed_again() -> None:
    bench = Bench()
    async with bench.running():
        for number in range(5):
            await asyncio.sleep(300)
            bench.server.server.close_watches()
            await bench.create(f"made-meanwhile-{number}")
            await asyncio.sleep(0.001)
            assert len(bench.told) == number + 1
        assert bench.cluster.calls["list"] == 1
        assert bench.informer.watches == 1 + 5


async def test_bookmarks_move_the_point_to_resume_from() -> None:
    bench = Bench()
    async with bench.running():
        for number in range(10):
            await bench.server.create(Node(metadata=ObjectMeta(name=f"node-{number}")), manager="test")
        await asyncio.sleep(100)
        bench.server.server.expire_history()
        bench.server.server.close_watches()
        await asyncio.sleep(100)
        first, resumed = bench.cluster.watched_from
        assert first != resumed
        assert bench.cluster.calls["list"] == 1


async def test_after_a_broken_connection_nothing_is_missed() -> None:
    bench = Bench(Script(event=[None, Unavailable("connection reset")]))
    async with bench.running():
        for name in ("a", "b", "c"):
            await bench.create(name)
        await asyncio.sleep(30)
    assert names(bench.told) == [(None, "a"), (None, "b"), (None, "c")]
    assert bench.cluster.calls["list"] == 2
    assert bench.cluster.calls["watch"] == 2


class Restarting:
    """The first watch breaks, and so does the next, in as many seconds as a server takes that begins to serve."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._watches = 0

    async def before(self, call: str) -> None:
        self._watches += call == "watch"
        if call == "watch" and self._watches == 2:
            await asyncio.sleep(self._seconds)
            raise Unavailable("it begins to serve")

    async def after(self, _call: str) -> None:
        return


@pytest.mark.parametrize("seconds", [0.0, 12.0])
async def test_a_server_that_was_away_is_listed_anew(seconds: float) -> None:
    """It may have been restored from a backup meanwhile, and be as far again as it was."""
    bench = Bench(Restarting(seconds))
    await bench.create("a")
    backup = bench.server.snapshot()
    async with bench.running():
        await bench.change("a", "lost")
        await asyncio.sleep(1)
        bench.server.restore(backup)
        await bench.create("b")
        await bench.create("c")
        await asyncio.sleep(30)
        assert [item.metadata.name for item in bench.informer.items()] == ["a", "b", "c"]
        assert bench.informer.get(key("a")) == await bench.server.get(Lease, "a", "default")
    assert bench.cluster.calls["list"] == 2


async def test_after_gone_handlers_are_told_the_difference() -> None:
    seconds_to_reconnect = 5.0
    bench = Bench(Script(watch=[None, seconds_to_reconnect]))
    for name in ("goes", "stays", "changes", "is-remade"):
        await bench.create(name)
    async with bench.running():
        before = {name: bench.informer.get(key(name)) for name in ("goes", "changes", "is-remade")}
        bench.told.clear()
        await asyncio.sleep(1)
        bench.server.server.close_watches()
        await asyncio.sleep(1)
        await bench.delete("goes")
        changed = await bench.change("changes", "me")
        await bench.delete("is-remade")
        remade = await bench.create("is-remade")
        new = await bench.create("new")
        bench.server.server.expire_history()
        assert bench.told == []
        await asyncio.sleep(60)
        assert bench.told == [
            (before["goes"], None),
            (before["changes"], changed),
            (before["is-remade"], None),
            (None, remade),
            (None, new),
        ]
        assert bench.cluster.calls["list"] == 1 + 1
        await bench.delete("new")
        await asyncio.sleep(1)
        assert bench.told[-1] == (new, None)


async def test_a_list_whose_pages_expire_is_read_in_one() -> None:
    bench = Bench(Script(list=[None, None, Gone("the token is too old")]))
    for number in range(1001):
        await bench.create(f"lease-{number:04}")
    async with bench.running():
        assert len(bench.informer.items()) == 1001
        assert bench.cluster.calls["list"] == 4


@pytest.mark.parametrize(
    ("error", "most"),
    [
        (
            Unavailable("down"),
            3000,
        ),  # nobody waits longer than 5 s for a server that is away, and each time lists
        (Gone("too old"), 600),
        (Forbidden("no right"), 600),
        (NotFound("no such kind"), 600),
        (CloseWatch(), 600),
    ],
)
async def test_a_server_that_refuses_every_watch_for_an_hour_is_asked_so_often_and_no_more(
    error: Exception, most: int
) -> None:
    bench = Bench(Script(watch=[error] * 10_000))
    async with bench.running():
        await asyncio.sleep(3600)
        assert bench.cluster.calls.total() <= most
        assert bench.cluster.calls["watch"] >= 120


async def test_a_server_that_fails_every_list_is_asked_every_few_seconds_and_that_is_said_once() -> None:
    bench = Bench(Script(list=[Unavailable("down")] * 10_000))
    running = asyncio.create_task(bench.informer.run())
    await asyncio.sleep(3600)
    assert 720 <= bench.cluster.calls["list"] <= 1800
    assert not bench.informer.synced.is_set()
    assert [record["error"] for record in bench.log("warning")] == ["down"]
    running.cancel()


async def test_who_can_do_without_a_kind_that_the_server_does_not_know_asks_for_it_seldom() -> None:
    script = Script(list=[NotFound("no such kind")] * 10_000)
    bench = Bench(script, can_do_without=True)
    async with bench.running():
        assert bench.informer.items() == []
        await asyncio.sleep(3600)
        assert bench.cluster.calls["list"] <= 40
        script.steps["list"] = []
        await bench.create("a")
        await asyncio.sleep(600)
        assert names(bench.told) == [(None, "a")]
    assert len(bench.log("warning")) == 1


async def test_a_kind_that_the_server_does_not_know_yet_is_waited_for_a_little() -> None:
    bench = Bench(Script(list=[NotFound("no such kind")] * 2), can_do_without=True)
    await bench.create("a")
    async with bench.running():
        assert names(bench.told) == [(None, "a")]
        assert bench.clock.monotonic() < 10


async def test_it_comes_back_within_the_cap_after_an_outage() -> None:
    script = Script()
    bench = Bench(script)
    async with bench.running():
        script.steps["watch"] = [Unavailable("down")] * 10_000
        bench.server.server.close_watches()
        await asyncio.sleep(3600)
        script.steps["watch"] = []
        await bench.create("a")
        await asyncio.sleep(5)
        assert names(bench.told) == [(None, "a")]
        assert bench.cluster.calls["list"] == 1


async def test_a_server_that_names_a_time_is_obeyed() -> None:
    bench = Bench(Script(list=[Throttled("busy", retry_after_seconds=100)]))
    async with bench.running():
        assert 100 <= bench.clock.monotonic() <= 101


async def test_a_selector_that_no_server_accepts_is_raised() -> None:
    bench = Bench(scope=Scope(fields="spec.mood=good"))
    with pytest.raises(Invalid):
        await bench.informer.run()


async def test_a_handler_that_raises_is_logged_and_the_others_are_told() -> None:
    bench = Bench()

    def fail(_old: Lease | None, _new: Lease | None) -> None:
        raise RuntimeError("handler broke")

    bench.informer.add_handler(fail)
    later: list[Told] = []
    bench.informer.add_handler(lambda old, new: later.append((old, new)))
    async with bench.running():
        await bench.create("a")
        await bench.delete("a")
        await asyncio.sleep(1)
    assert later == bench.told
    assert len(later) == 2
    first, second = bench.log("error")
    assert first["key"] == second["key"] == "default/a"
    assert "handler broke" in first["exception"]


async def test_a_broken_invariant_in_a_handler_is_raised() -> None:
    bench = Bench()

    def stop(_old: Lease | None, _new: Lease | None) -> None:
        raise StopError("one address, two pods")

    bench.informer.add_handler(stop)
    asyncio.get_running_loop().call_later(5, lambda: asyncio.ensure_future(bench.create("a")))
    with pytest.raises(StopError, match="one address, two pods"):
        await bench.informer.run()
    assert bench.cluster.open_watches == 0


async def test_a_handler_that_comes_late_is_told_of_what_is_there() -> None:
    bench = Bench()
    await bench.create("a")
    async with bench.running():
        late: list[Told] = []
        bench.informer.add_handler(lambda old, new: late.append((old, new)))
        await bench.create("b")
        await asyncio.sleep(1)
        assert names(late) == [(None, "a"), (None, "b")]


async def test_a_handler_added_by_a_handler_is_told_once_of_each_object() -> None:
    bench = Bench()
    added: list[Told] = []

    def add_another(_old: Lease | None, _new: Lease | None) -> None:
        if not added:
            bench.informer.add_handler(lambda old, new: added.append((old, new)))

    bench.informer.add_handler(add_another)
    async with bench.running():
        made = await bench.create("a")
        await asyncio.sleep(1)
    assert added == [(None, made)]


async def test_cancelling_it_closes_its_watch() -> None:
    bench = Bench()
    async with bench.running():
        await asyncio.sleep(1)
        assert bench.cluster.open_watches == 1
    assert bench.cluster.open_watches == 0


async def test_before_the_first_list_it_has_been_silent_for_ever() -> None:
    bench = Bench(Script(list=[Unavailable("down")]))
    running = asyncio.create_task(bench.informer.run())
    await asyncio.sleep(0.5)
    assert bench.informer.silent_seconds() == math.inf
    await bench.informer.synced.wait()
    assert bench.informer.silent_seconds() == 0
    running.cancel()


async def test_a_server_with_nothing_to_tell_is_not_silent() -> None:
    bench = Bench()
    async with bench.running():
        for _ in range(100):
            await asyncio.sleep(36)
            assert bench.informer.silent_seconds() == 0


async def test_silence_counts_from_the_last_thing_heard_not_from_when_the_watch_was_found_broken() -> None:
    """Else a node that noticed late would hand out addresses that others may already have."""
    down: list[Step] = [Unavailable("down")] * 100
    bench = Bench(Script(event=[None, Unavailable("reset")], list=[None, *down], watch=[None, *down]))
    async with bench.running():
        await asyncio.sleep(10)
        await bench.create("heard")
        await asyncio.sleep(99)
        assert bench.informer.silent_seconds() == 0
        await bench.create("missed")
        await asyncio.sleep(1)
        assert bench.informer.silent_seconds() == 100
        await asyncio.sleep(200)
        assert bench.informer.silent_seconds() == 300


async def test_a_quiet_watch_that_lasted_proves_contact_until_a_while_before_it_broke() -> None:
    down: list[Step] = [Unavailable("down")] * 100
    bench = Bench(Script(event=[Unavailable("reset")], list=[None, *down], watch=[None, *down]))
    async with bench.running():
        await asyncio.sleep(3600)
        await bench.create("missed")
        await asyncio.sleep(10)
        assert bench.informer.silent_seconds() == 130


async def test_a_server_that_takes_every_watch_and_never_answers_is_silent() -> None:
    """A load balancer that has lost its servers does that; watches then end after the adapter's patience."""
    bench = Bench(Faltering(until=1000.0))
    async with bench.running():
        await asyncio.sleep(10)
        bench.server.server.close_watches()
        await asyncio.sleep(900)
        assert bench.cluster.calls["watch"] + bench.cluster.calls["list"] > 10
        assert bench.informer.silent_seconds() == 900
        await asyncio.sleep(300)
        assert bench.informer.silent_seconds() == 0


async def test_an_event_ends_the_silence_of_a_resumed_watch() -> None:
    bench = Bench()
    async with bench.running():
        await asyncio.sleep(10)
        bench.server.server.close_watches()
        await asyncio.sleep(100)
        assert bench.informer.silent_seconds() == 100
        await bench.create("a")
        await asyncio.sleep(1)
        assert bench.informer.silent_seconds() == 0


async def test_a_resumed_watch_that_lasts_is_alive_though_it_brings_nothing() -> None:
    bench = Bench()
    async with bench.running():
        await asyncio.sleep(10)
        bench.server.server.close_watches()
        await asyncio.sleep(119)
        assert bench.informer.silent_seconds() == 119
        await asyncio.sleep(1)
        assert bench.informer.silent_seconds() == 0


async def test_a_list_ends_the_silence() -> None:
    bench = Bench(Script(watch=[None, *[Throttled("busy")] * 5, Gone("too old")]))
    async with bench.running():
        await asyncio.sleep(10)
        bench.server.server.close_watches()
        await asyncio.sleep(1)
        assert bench.informer.silent_seconds() == 1
        while bench.cluster.calls["list"] == 1:
            assert bench.informer.silent_seconds() > 0
            await asyncio.sleep(1)
        await asyncio.sleep(30)
        assert bench.informer.silent_seconds() == 0


async def test_a_cluster_restored_from_a_backup_is_listed_anew_and_the_list_counts() -> None:
    """Its versions are lower than those known, and objects are as they were, gone, or back again."""
    bench = Bench()
    kept, gone = await bench.create("kept"), await bench.create("deleted")
    backup = bench.server.snapshot()
    async with bench.running():
        await bench.change("kept", "later")
        await bench.delete("deleted")
        await bench.create("made")
        await asyncio.sleep(1)
        bench.told.clear()
        bench.server.restore(backup)
        await asyncio.sleep(10)
        assert sorted(bench.informer.items(), key=lambda item: item.key) == [gone, kept]
        assert names(bench.told) == [
            ("made", None),
            (None, "deleted"),
            ("kept", "kept"),
        ]
        await bench.change("kept", "again")
        await asyncio.sleep(1)
        assert bench.told[-1][1] == await bench.server.get(Lease, "kept", "default")
        assert bench.cluster.calls["list"] == 2


def test_a_version_that_was_given_out_again_is_told_by_its_content() -> None:
    cache = ObjectCache[Lease](make_logger(io.StringIO(), LoopClock()))
    told: list[Told] = []
    cache.add_handler(lambda old, new: told.append((old, new)))
    place = ObjectMeta(name="a", namespace="default", uid="u", resource_version="7")
    before = Lease(metadata=place, spec=LeaseSpec(holder_identity="before"))
    after = Lease(metadata=place, spec=LeaseSpec(holder_identity="after"))
    for listed in (before, before, after):
        cache.replace_all([listed])
    assert told == [(None, before), (before, after)]


async def test_a_watch_that_was_broken_for_long_is_not_resumed() -> None:
    """Meanwhile a restored cluster may have given out as many versions again: it would take ours for its own."""
    bench = Bench(Faltering(until=20.0))
    await bench.create("a")
    backup = bench.server.snapshot()
    async with bench.running():
        await bench.change("a", "lost")
        await asyncio.sleep(1)
        bench.server.restore(backup)
        for _ in range(5):
            await bench.change("a", "again")
        await asyncio.sleep(100)
        assert bench.informer.items() == [await bench.server.get(Lease, "a", "default")]


async def test_a_watch_that_tells_of_an_earlier_version_is_listed_anew() -> None:
    bench = Bench()
    async with bench.running():
        await bench.create("a")
        await asyncio.sleep(1)
        informer = bench.informer
        older = WatchEvent[Lease](Change.BOOKMARK, None, "1")
        with pytest.raises(Gone, match="went back"):
            informer._take(older)


class Faltering:
    """After the first watch, and until `until`, watches are taken and nothing comes of them for 30 seconds."""

    def __init__(self, until: float) -> None:
        self._until = until
        self._watches = 0

    async def before(self, call: str) -> None:
        self._watches += call == "watch"
        if self._watches > 1 and asyncio.get_running_loop().time() < self._until:
            await asyncio.sleep(30)
            raise Unavailable("no answer")

    async def after(self, _call: str) -> None:
        return


class RandomFaults:
    """Until `until`, anything may happen."""

    def __init__(self, randomness: Random, until: float) -> None:
        self._randomness = randomness
        self._until = until

    async def before(self, call: str) -> None:
        if asyncio.get_running_loop().time() >= self._until:
            return
        await asyncio.sleep(self._randomness.choice([0, 0, 0.01, 3]))
        error = self._randomness.choice(self._errors(call))
        if error is not None:
            raise error

    async def after(self, _call: str) -> None:
        return

    def _errors(self, call: str) -> list[Exception | None]:
        errors: list[Exception | None] = [None] * 6
        errors += [Unavailable("down"), Gone("too old")]
        return [*errors, CloseWatch()] if call in {"watch", "event"} else errors


@examples(60)
@given(st.integers(0, 2**32))
def test_whatever_breaks_handlers_are_told_a_true_story_that_ends_with_what_is(seed: int) -> None:
    async def scenario() -> None:
        randomness = seeded_randomness(seed)
        bench = Bench(
            RandomFaults(randomness, until=200.0),
            limits=ApiServerLimits(history=5, unread=3, bookmark_seconds=20),
        )
        running = asyncio.create_task(bench.informer.run())
        for _ in range(60):
            name = randomness.choice("abcd")
            with suppress(ClusterError):
                match randomness.choice(["create", "change", "delete"]):
                    case "create":
                        await bench.create(name)
                    case "change":
                        await bench.change(name, str(randomness.random()))
                    case _:
                        await bench.delete(name)
            await asyncio.sleep(randomness.choice([0, 0, 1, 10]))
        await asyncio.sleep(max(0.0, 200.0 - bench.clock.monotonic()) + 60)
        running.cancel()
        there = (await bench.server.list(Lease, "default")).items
        assert sorted(bench.informer.items(), key=lambda item: item.key) == there
        known: dict[Key, Lease] = {}
        for old, new in bench.told:
            item = new or old
            assert item is not None
            assert known.get(item.key) == old
            if new is None:
                del known[item.key]
                continue
            if old is not None:
                assert old.metadata.uid == new.metadata.uid
                assert int(old.metadata.resource_version) < int(new.metadata.resource_version)
            known[item.key] = new
        assert known == {item.key: item for item in there}

    virtual_time.run(scenario())


async def test_a_write_that_the_copy_had_not_seen_when_the_server_went_back_is_told_of() -> None:
    """The copy is right before and after: nothing but the write itself says that something was undone."""
    bench = Bench(Script(event=[Unavailable("the connection broke")]))
    made = await bench.create("a")
    async with bench.running():
        backup = bench.server.snapshot()
        bench.informer.expect(await bench.change("a", "me"))
        bench.server.restore(backup)
        await asyncio.sleep(60)
        assert bench.told[-1] == (made, made)
        told = len(bench.told)
        bench.server.server.close_watches()
        await asyncio.sleep(60)
        assert len(bench.told) == told  # once


async def test_an_object_that_was_made_and_undone_before_the_copy_had_it_is_told_of_as_gone() -> None:
    bench = Bench(Script(event=[Unavailable("the connection broke")]))
    async with bench.running():
        backup = bench.server.snapshot()
        made = await bench.create("a")
        bench.informer.expect(made)
        bench.server.restore(backup)
        await asyncio.sleep(60)
        assert bench.told == [(made, None)]


async def test_a_write_that_the_copy_shows_is_not_told_of_twice() -> None:
    bench = Bench()
    made = await bench.create("a")
    async with bench.running():
        changed = await bench.change("a", "me")
        bench.informer.expect(changed)
        bench.informer.expect(changed, is_deleted=True)
        await bench.delete("a")
        await asyncio.sleep(1)
        bench.server.server.close_watches()
        await asyncio.sleep(60)
        assert bench.told == [(None, made), (made, changed), (changed, None)]
