"""Who may do what: a cluster its own, the administration everything, strangers nothing."""

import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import Struct

from allocator.contract.harness import a_wish
from allocator.contract.test_reserving import given
from allocator.service.running import a_client, a_log, ask, open_store, served
from podtide.allocator.client import HttpAllocator
from podtide.allocator.errors import InForceConflict, NoSuchContainer, NotAllowed
from podtide.allocator.service.tokens import Tokens
from podtide.allocator.subnets import Bounds, ClusterBounds, SubnetInForce, SubnetSpec

pytestmark = pytest.mark.real_time

PODS = SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/28",))


class Parties(Struct, frozen=True):
    """One service, and everybody's client of it."""

    url: str
    administration: HttpAllocator
    east: HttpAllocator
    west: HttpAllocator
    stranger: HttpAllocator


@asynccontextmanager
async def parties(directory: Path) -> AsyncIterator[Parties]:
    lines = []
    for who in ("administration", "east", "west", "stranger"):
        (directory / who).write_text(f"token-of-{who}\n")
        digest = hashlib.sha256(f"token-of-{who}".encode()).hexdigest()
        lines += [f"{digest} {who if who == 'administration' else f'cluster {who}'}\n"]
    (directory / "tokens").write_text("".join(lines[:-1]))
    async with (
        await open_store() as store,
        served(store, tokens=Tokens(directory / "tokens", a_log())) as url,
        a_client(url, token_file=directory / "administration") as administration,
        a_client(url, token_file=directory / "east") as east,
        a_client(url, token_file=directory / "west") as west,
        a_client(url, token_file=directory / "stranger") as stranger,
    ):
        await administration.add_subnet(PODS)
        yield Parties(url, administration, east, west, stranger)


async def test_a_cluster_reaches_its_own_containers_and_no_others(tmp_path: Path) -> None:
    async with parties(tmp_path) as all_of_them:
        east, west = all_of_them.east, all_of_them.west
        mine = await east.put_container(a_wish("a", 3))
        assert await east.get_container("a", cluster="east") == mine
        for attempt in (
            west.get_container("a", cluster="east"),
            west.delete_container("a", cluster="east"),
            west.put_container(a_wish("a", 0, 2)),
            west.list_containers(cluster="east"),
            west.move_container(a_wish("a", 0, 2)),
            west.reserve_container(given("a", "10.1.0.9")),
            west.quarantined(cluster="east"),
            west.end_quarantine("a", (), cluster="east", reason="none of ours"),
        ):
            with pytest.raises(NotAllowed, match="use that cluster's token"):
                await attempt
        for guess in (west.get_container("a", cluster="west"), west.delete_container("a", cluster="west")):
            with pytest.raises(NoSuchContainer):
                await guess
        assert await east.get_container("a", cluster="east") == mine


async def test_a_cluster_lists_its_own_containers_whether_it_says_so_or_not(tmp_path: Path) -> None:
    async with parties(tmp_path) as all_of_them:
        await all_of_them.east.put_container(a_wish("a", 1))
        await all_of_them.west.put_container(a_wish("b", 1, cluster="west"))
        listed = {}
        for who in ("east", "west", "administration"):
            page = await getattr(all_of_them, who).list_containers()
            listed[who] = [container.id for container in page.items]
        assert listed == {"east": ["a"], "west": ["b"], "administration": ["a", "b"]}


async def test_a_cluster_sees_how_full_a_shared_subnet_is_but_of_debts_only_its_own(tmp_path: Path) -> None:
    async with parties(tmp_path) as all_of_them:
        await all_of_them.east.put_container(a_wish("a", 20))
        assert [debt.container for debt in await all_of_them.east.owed("blue", "pods")] == ["a"]
        assert await all_of_them.west.owed("blue", "pods") == ()
        assert [debt.container for debt in await all_of_them.administration.owed("blue", "pods")] == ["a"]
        (reading,) = await all_of_them.west.utilization("blue", "pods")
        assert (reading.reserved, reading.capacity) == (13, 13)
        assert (await all_of_them.west.get_subnet("blue", "pods")).reserved == 13
        assert len(await all_of_them.west.list_subnets()) == 1
        assert await all_of_them.west.history("blue", "pods", since=0, until=4e9)


async def test_a_cluster_does_not_change_subnets(tmp_path: Path) -> None:
    async with parties(tmp_path) as all_of_them:
        before = await all_of_them.administration.list_subnets()
        for attempt in (
            all_of_them.east.add_subnet(SubnetSpec(network="blue", name="more", cidrs=("10.2.0.0/24",))),
            all_of_them.east.grow_subnet("blue", "pods", ("10.2.0.0/24",)),
            all_of_them.east.shrink_subnet("blue", "pods", ("10.1.0.0/24",)),
            all_of_them.east.remove_subnet("blue", "pods"),
        ):
            with pytest.raises(NotAllowed, match="use one for administration"):
                await attempt
        assert await all_of_them.administration.list_subnets() == before


async def test_clusters_decide_the_batch_of_a_shared_subnet_from_the_same_counts(tmp_path: Path) -> None:
    async with parties(tmp_path) as all_of_them:
        east, west = all_of_them.east, all_of_them.west
        await east.put_container(a_wish("a", 3))
        await west.put_container(a_wish("b", 3, cluster="west"))
        assert [alike.containers for alike in (await west.demand("blue", "pods")).alike] == [2]
        await east.put_in_force("blue", "pods", SubnetInForce(batch=16, buffer="0.5", top=16))
        with pytest.raises(InForceConflict):
            await west.put_in_force("blue", "pods", SubnetInForce(batch=8, buffer="0.5", top=8))
        await west.put_in_force("blue", "pods", SubnetInForce(batch=8, buffer="0.5", top=8, serial=1))
        assert (await east.get_subnet("blue", "pods")).in_force.batch == 8


async def test_a_cluster_sets_bounds_of_its_own_and_sees_those_of_all(tmp_path: Path) -> None:
    async with parties(tmp_path) as all_of_them:
        bounds = Bounds(batch=16, buffer="0.5", lower="0.8", upper="0.9")
        await all_of_them.east.put_container(a_wish("a", 3))
        await all_of_them.west.set_bounds("blue", "pods", cluster="west", bounds=bounds)
        with pytest.raises(NotAllowed, match="not for the bounds of east: use that cluster's token"):
            await all_of_them.west.set_bounds("blue", "pods", cluster="east", bounds=bounds)
        assert (await all_of_them.west.demand("blue", "pods")).bounds == ()
        await all_of_them.administration.set_bounds("blue", "pods", cluster="east", bounds=bounds)
        assert (await all_of_them.west.demand("blue", "pods")).bounds == (ClusterBounds("east", bounds),)


async def test_the_administration_clears_up_after_a_cluster_that_is_gone(tmp_path: Path) -> None:
    async with parties(tmp_path) as all_of_them:
        await all_of_them.east.put_container(a_wish("a", 3))
        await all_of_them.administration.delete_container("a", cluster="east")
        assert (await all_of_them.administration.list_containers()).items == ()


async def test_strangers_get_nothing(tmp_path: Path) -> None:
    async with parties(tmp_path) as all_of_them:
        with pytest.raises(NotAllowed, match="the token is not known here"):
            await all_of_them.stranger.list_subnets()
        with pytest.raises(NotAllowed, match="the token is not known here"):
            await all_of_them.stranger.put_in_force("blue", "pods", SubnetInForce(batch=1))
        async with a_client(all_of_them.url) as nobody:
            with pytest.raises(NotAllowed, match="no token was shown"):
                await nobody.list_subnets()


@pytest.mark.parametrize("shown", ["", "Basic YTpi", "Bearer", "Bearer ", "bearer wrong", "Bearer \xff\xfe"])
async def test_what_is_no_token_is_answered_with_401_and_how_to_show_one(tmp_path: Path, shown: str) -> None:
    async with parties(tmp_path) as all_of_them:
        answer = await ask(all_of_them.url, "GET", "/subnets", headers={"Authorization": shown})
        assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert json.loads(answer.text)["error"] == "NotAllowed"


async def test_a_stranger_is_turned_away_before_what_it_sends_is_read(tmp_path: Path) -> None:
    async with parties(tmp_path) as all_of_them:
        answer = await ask(all_of_them.url, "PUT", "/clusters/east/containers/a", b"x" * 10_000_000)
        assert answer.status == 401


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/openapi.json"])
async def test_whoever_runs_the_service_needs_no_token(tmp_path: Path, path: str) -> None:
    async with parties(tmp_path) as all_of_them:
        assert (await ask(all_of_them.url, "GET", path)).status == 200


@pytest.mark.parametrize("host", ["allocator.example:80", "10.0.0.1", "attacker.example"])
async def test_without_tokens_only_what_is_meant_for_this_machine_is_answered(host: str) -> None:
    async with await open_store() as store, served(store) as url:
        answer = await ask(url, "GET", "/subnets", headers={"Host": host})
        assert answer.status == 401
        assert "only this machine's own are answered" in answer.text
        assert (await ask(url, "GET", "/subnets", headers={"Host": "localhost:1234"})).status == 200


async def test_a_cluster_lists_and_ends_its_own_quarantines_alone(tmp_path: Path) -> None:
    async with parties(tmp_path) as all_of_them:
        east, west, administration = all_of_them.east, all_of_them.west, all_of_them.administration
        await east.put_container(a_wish("a", 2))
        await west.put_container(a_wish("w", 2, cluster="west"))
        await east.delete_container("a", cluster="east")
        await west.delete_container("w", cluster="west")
        (own,) = (await east.quarantined()).items
        assert own.container == "a"
        with pytest.raises(NoSuchContainer):
            await west.end_quarantine("a", own.addresses, cluster="west", reason="a guess")
        assert await east.end_quarantine("a", own.addresses, cluster="east", reason="looked") == 3
        assert [left.container for left in (await administration.quarantined()).items] == ["w"]
