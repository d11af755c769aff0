"""A URL with several PostgreSQL servers finds the primary; a standby that lacks the last grants gives none."""

import socket
from collections.abc import Iterator

import pytest

from allocator.contract.harness import addresses, everything
from allocator.store.databases import HandClock
from allocator.store.wishes import spec, wish
from left_out import leave_out
from podtide.allocator.containers import AllocatedContainer
from podtide.allocator.errors import AllocatorUnavailable, StoreRecovering
from podtide.allocator.store import open_allocator
from podtide.allocator.store.drivers.postgresql_servers import one_url_each
from podtide.allocator.terms import HeldAddress, HeldContainer, TermClaim
from podtide.runtime.clock import SystemClock
from postgresql_pair import PostgresqlPair
from postgresql_server import NoPostgresql

CLAIM = TermClaim(cluster="east", cluster_uid="uid", holder="one")


@pytest.fixture(scope="module")
def postgresql_pair() -> Iterator[PostgresqlPair]:
    """A primary and a standby that stay what they are."""
    try:
        with PostgresqlPair() as pair:
            yield pair
    except NoPostgresql as reason:
        leave_out("PostgreSQL", reason)


@pytest.mark.parametrize(
    ("url", "each"),
    [
        ("postgresql://u@h/d", ["postgresql://u@h/d"]),
        ("postgresql:///d?host=/run", ["postgresql:///d?host=/run"]),
        (
            "postgresql://u:p%40@a:1,b:2/d?sslmode=require",
            ["postgresql://u:p%40@a:1/d?sslmode=require", "postgresql://u:p%40@b:2/d?sslmode=require"],
        ),
        ("postgres://a,[fd00::1]:5433", ["postgres://a", "postgres://[fd00::1]:5433"]),
        ("postgresql://u:p@ss@a,b/d", ["postgresql://u:p@ss@a/d", "postgresql://u:p@ss@b/d"]),
        ("nothing", ["nothing"]),
    ],
)
def test_a_url_with_several_servers_is_one_for_each(url: str, each: list[str]) -> None:
    assert one_url_each(url) == each


def reversed_hosts(url: str) -> str:
    head, _, rest = url.partition("@")
    hosts, _, database = rest.partition("/")
    return f"{head}@{','.join(reversed(hosts.split(',')))}/{database}"


@pytest.mark.slow
@pytest.mark.real_time
async def test_the_standby_is_passed_over_wherever_it_stands_in_the_url(
    postgresql_pair: PostgresqlPair,
) -> None:
    for url in (postgresql_pair.url, reversed_hosts(postgresql_pair.url)):
        for more in ("", "?target_session_attrs=any", "?target_session_attrs=primary"):
            async with await open_allocator(f"{url}{more}", clock=SystemClock(), migrate=True) as allocator:
                await allocator.prove_writable()


@pytest.mark.slow
@pytest.mark.real_time
async def test_a_standby_alone_is_said_to_take_no_writes(postgresql_pair: PostgresqlPair) -> None:
    standby = one_url_each(postgresql_pair.url)[1]
    with pytest.raises(AllocatorUnavailable, match="did not answer: it is a standby, which takes no writes"):
        await open_allocator(standby, clock=HandClock())


@pytest.mark.slow
@pytest.mark.real_time
async def test_a_server_that_hangs_does_not_hide_the_one_behind_it(postgresql_pair: PostgresqlPair) -> None:
    primary = one_url_each(postgresql_pair.url)[0]
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes connections, and never says a word
        url = primary.replace("@", f"@127.0.0.1:{silent.getsockname()[1]},")
        async with await open_allocator(url, clock=SystemClock(), migrate=True) as allocator:
            await allocator.prove_writable()


@pytest.mark.real_time
async def test_servers_that_are_all_away_are_named_in_one_line_without_the_password() -> None:
    with pytest.raises(AllocatorUnavailable) as refusal:
        await open_allocator("postgresql://me:secret@127.0.0.1:1,127.0.0.1:2/db", clock=HandClock())
    said = str(refusal.value)
    assert "database postgresql://me@127.0.0.1:1,127.0.0.1:2/db did not answer: 127.0.0.1:1: " in said
    assert ", 127.0.0.1:2: " in said
    assert "secret" not in said
    assert "\n" not in said


def as_reported(container: AllocatedContainer, recovery: int) -> HeldContainer:
    return HeldContainer(
        id=container.id, network=container.network, subnet=container.subnet, cluster="east", cluster_uid="uid",
        node=container.node, primary=container.primary, version=container.version, request_uid=container.request_uid,
        generation=container.generation, recovery=recovery,
        addresses=tuple(HeldAddress(each.name, each.ip) for each in container.addresses),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.real_time
async def test_an_asynchronous_standby_without_the_last_grants_grants_nothing_until_they_are_reported() -> (
    None
):
    try:
        servers = PostgresqlPair(synchronous=False)
    except NoPostgresql as reason:
        leave_out("PostgreSQL", reason)
    with servers:
        async with await open_allocator(servers.url, clock=SystemClock(), migrate=True) as allocator:
            await allocator.add_subnet(spec("10.1.0.0/24"))
            await allocator.open_term(CLAIM)
            first = await allocator.put_container(wish("a", 3, cluster_uid="uid"))
            servers.cut_off_standby()
            grown = await allocator.put_container(wish("a", 5, 2, cluster_uid="uid"))
            lost = await allocator.put_container(wish("b", 7, cluster_uid="uid"))
            servers.kill_primary()
            servers.promote()
            with pytest.raises((StoreRecovering, AllocatorUnavailable)):
                await allocator.put_container(wish("c", 9, cluster_uid="uid"))
            opened = await allocator.open_term(CLAIM)
            with pytest.raises(StoreRecovering):
                await allocator.put_container(wish("c", 9, cluster_uid="uid"))
            assert (await allocator.get_container("a", cluster="east")).addresses == first.addresses
            for container in (grown, lost):
                assert await allocator.adopt_container(as_reported(container, opened.recovery)) == ()
            await allocator.finish_report("east", cluster_uid="uid", recovery=opened.recovery)
            new = await allocator.put_container(wish("c", 9, cluster_uid="uid"))
            assert everything(new).isdisjoint(everything(grown) | everything(lost))
            assert addresses(await allocator.get_container("b", cluster="east")) == addresses(lost)
            assert await allocator.audit() == ()
