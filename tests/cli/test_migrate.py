"""`podtide migrate whereabouts`: shows first, then does, one definition at a time, as often as it is run."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Run
from cli.drawn_cluster import MANAGER, DrawnCluster, served
from podtide.cli.installation.migrate.whereabouts import carry_out, migrate_cluster, read_situation
from podtide.cluster.port import Conflict
from podtide.networks.migration import DefinitionChange, Migration, confirmed, plan_migration
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.network_attachment import (
    NetworkAttachmentDefinition,
    NetworkAttachmentDefinitionSpec,
)
from podtide.resources.overlapping_range import (
    OverlappingRangeIPReservation,
    OverlappingRangeIPReservationSpec,
)

BLUE = '{ "cniVersion":"1.0.0", "name":"blue",\n  "ipam": {"range":"10.0.0.0/24", "type" : "whereabouts","x":1.0} }'


async def draw_attachment(drawn: DrawnCluster, name: str, config: str) -> NetworkAttachmentDefinition:
    place = ObjectMeta(name=name, namespace="default", labels={"app": "shop"}, annotations={"note": "keep"})
    spec = NetworkAttachmentDefinitionSpec(config=config)
    return await drawn.cluster.create(NetworkAttachmentDefinition(metadata=place, spec=spec), manager=MANAGER)


async def draw_pool(drawn: DrawnCluster, name: str, cidr: str, held: dict[str, str]) -> None:
    allocations = {key: IPAllocation(id="sandbox", podref=pod) for key, pod in held.items()}
    place = ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE)
    await drawn.cluster.create(
        IPPool(metadata=place, spec=IPPoolSpec(range=cidr, allocations=allocations)), manager=MANAGER
    )


async def draw_reservation(drawn: DrawnCluster, name: str, podref: str) -> None:
    place = ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE)
    spec = OverlappingRangeIPReservationSpec(podref=podref)
    await drawn.cluster.create(OverlappingRangeIPReservation(metadata=place, spec=spec), manager=MANAGER)


async def draw_whereabouts(drawn: DrawnCluster) -> None:
    await draw_attachment(drawn, "blue", BLUE)
    await draw_attachment(drawn, "other", '{"ipam": {"type": "host-local"}}')
    await draw_pool(drawn, "10.0.0.0-24", "10.0.0.0/24", {"1": "default/web"})
    await draw_reservation(drawn, "10.0.0.1", "default/web")
    await drawn.pod("web", "n1", "10.1.0.10")


async def draw_trouble(drawn: DrawnCluster) -> None:
    await draw_whereabouts(drawn)
    await draw_attachment(drawn, "bad", '{"ipam": {"type": "whereabouts", "range": "10.0.0.0/99"}}')
    for number in range(12):
        await draw_reservation(drawn, f"10.0.0.{50 + number}", "default/gone")


def migrate(podtide: Run, kubeconfig: Path, *arguments: str) -> Any:
    return podtide("migrate", "whereabouts", "--kubeconfig", str(kubeconfig), *arguments)


def test_a_dry_run_shows_and_writes_nothing(podtide: Run, tmp_path: Path) -> None:
    with served(draw_whereabouts, tmp_path) as kubeconfig:
        first = migrate(podtide, kubeconfig, "--dry-run")
        again = migrate(podtide, kubeconfig, "--dry-run")
    assert first == again
    assert first.status == 0
    assert first.out.splitlines() == [
        "NETWORK      MODE     RANGES       DEFINITIONS  POOLS  ADDRESSES",
        "10.0.0.0-24  classic  10.0.0.0/24  1            1      1",
        "",
        "would change from whereabouts to podtide (1)",
        "  default/blue",
        "",
        "next:",
        "  1. stop Whereabouts' node slice controller and its reconciler, if they run: two programs must not write the same objects",
        "  2. see that podtide's controller and agents run, and its plugin is installed on every node",
        "  3. podtide migrate whereabouts --apply",
    ]
    assert first.err == (
        "podtide: reading definitions and pods, and reservations and pools in namespace kube-system\n"
    )


async def draw_many_ranges(drawn: DrawnCluster) -> None:
    ranges = [{"range": f"fd00:{number}::/64"} for number in range(6)]
    config = {"name": "n", "ipam": {"type": "whereabouts", "network_name": "storage", "ipRanges": ranges}}
    await draw_attachment(drawn, "storage", json.dumps(config))


def test_on_eighty_columns_no_row_is_broken(
    podtide: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podtide.cli.installation.migrate.whereabouts.screen_width", lambda: 80)
    with served(draw_many_ranges, tmp_path) as kubeconfig:
        header, row, *_ = migrate(podtide, kubeconfig, "--dry-run").out.splitlines()
    assert (header.split()[:3], row.split()[:2]) == (["NETWORK", "MODE", "RANGES"], ["storage", "classic"])
    assert "…" in row
    assert len(row) <= 80


def test_apply_does_it_and_a_second_time_there_is_nothing_to_do(podtide: Run, tmp_path: Path) -> None:
    with served(draw_whereabouts, tmp_path) as kubeconfig:
        before = json.loads(migrate(podtide, kubeconfig, "--dry-run", "-o", "json").out)
        done = migrate(podtide, kubeconfig, "--apply")
        again = migrate(podtide, kubeconfig, "--apply", "-o", "json")
    assert before["changes"] == [
        {"attachment": "default/blue", "before": BLUE, "after": BLUE.replace('"whereabouts"', '"podtide"')}
    ]
    assert done.status == again.status == 0
    assert "changed from whereabouts to podtide (1)\n  default/blue\n" in done.out
    assert "to go back: set the IPAM type of what is listed above to whereabouts again" in done.out
    assert "podtide: 1 of 1: default/blue changed\n" in done.err
    after = json.loads(again.out)
    assert (after["changes"], after["changed"], after["done"]) == ([], [], ["default/blue"])
    assert after["networks"] == before["networks"]


def test_what_is_left_for_a_person_is_exit_status_1_and_the_rest_is_done(
    podtide: Run, tmp_path: Path
) -> None:
    with served(draw_trouble, tmp_path) as kubeconfig:
        outcome = migrate(podtide, kubeconfig, "--apply")
        shown = json.loads(migrate(podtide, kubeconfig, "--dry-run", "-o", "json").out)
    assert outcome.status == 1
    assert "changed from whereabouts to podtide (1)\n  default/blue\n" in outcome.out
    assert "left alone, for you to mend (1)\n  default/bad: " in outcome.out
    assert "wrong today, put right by the controller's leak repair (24)" in outcome.out
    assert "  and 14 more (-o json shows all)" in outcome.out
    assert "podtide: reading them again" in outcome.err
    assert len(shown["mended_by_repair"]) == 24
    assert [item["attachment"] for item in shown["left_alone"]] == ["default/bad"]


def test_a_cluster_without_such_networks_says_so(podtide: Run, tmp_path: Path) -> None:
    async def nothing(_drawn: DrawnCluster) -> None:
        return

    with served(nothing, tmp_path) as kubeconfig:
        outcome = migrate(podtide, kubeconfig, "--apply")
    assert (outcome.status, outcome.out) == (
        0,
        "no secondary networks of whereabouts or podtide are defined here\n",
    )


@pytest.mark.parametrize("flags", [(), ("--dry-run", "--apply")])
def test_one_has_to_say_which(podtide: Run, flags: tuple[str, ...]) -> None:
    outcome = podtide("migrate", "whereabouts", *flags)
    assert (outcome.status, outcome.err) == (
        2,
        "podtide: say either --dry-run or --apply. See `podtide migrate whereabouts --help`.\n",
    )


async def changes(drawn: DrawnCluster) -> tuple[DefinitionChange, ...]:
    return plan_migration(await read_situation(drawn.cluster, SYSTEM_NAMESPACE)).changes


async def test_nothing_but_the_configuration_of_a_definition_is_written() -> None:
    drawn = DrawnCluster()
    before = await draw_attachment(drawn, "blue", BLUE)
    [change] = await changes(drawn)
    assert await carry_out(drawn.cluster, change)
    after = await drawn.cluster.get(NetworkAttachmentDefinition, "blue", "default")
    assert after.spec.config == BLUE.replace('"whereabouts"', '"podtide"')
    assert after.metadata.labels == before.metadata.labels
    assert after.metadata.annotations == before.metadata.annotations
    assert await changes(drawn) == ()


async def test_a_definition_that_somebody_wrote_or_made_anew_meanwhile_is_not_touched() -> None:
    drawn = DrawnCluster()
    await draw_attachment(drawn, "blue", BLUE)
    [change] = await changes(drawn)
    await drawn.cluster.delete(NetworkAttachmentDefinition, "blue", "default")
    assert not await carry_out(drawn.cluster, change)
    await draw_attachment(drawn, "blue", BLUE.replace("10.0.0.0", "10.9.0.0"))
    assert not await carry_out(drawn.cluster, change)
    after = await drawn.cluster.get(NetworkAttachmentDefinition, "blue", "default")
    assert after.spec.config == BLUE.replace("10.0.0.0", "10.9.0.0")


async def test_what_somebody_was_quicker_with_is_told_and_left_for_the_next_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = DrawnCluster()
    await draw_attachment(drawn, "blue", BLUE)
    monkeypatch.setattr(drawn.cluster, "apply", overtaken)
    outcome = await migrate_cluster(drawn.cluster, SYSTEM_NAMESPACE, apply_=True)
    assert (outcome.changed, outcome.overtaken) == ((), ("default/blue",))
    assert outcome.needs_attention


async def overtaken(*_: object, **__: object) -> None:
    raise Conflict("somebody was quicker")


async def test_a_run_that_was_interrupted_goes_on_where_it_was() -> None:
    drawn = DrawnCluster()
    for name in ("a", "b", "c"):
        await draw_attachment(drawn, name, BLUE.replace("blue", name))
    first, *_ = await changes(drawn)
    await carry_out(drawn.cluster, first)
    assert [change.name for change in await changes(drawn)] == ["default/b", "default/c"]


async def test_only_what_is_wrong_twice_is_wrong() -> None:
    drawn = DrawnCluster()
    await draw_attachment(drawn, "blue", BLUE)
    await draw_pool(drawn, "10.0.0.0-24", "10.0.0.0/24", {"1": "default/gone", "2": "default/web"})
    await drawn.pod("web", "n1", "10.1.0.10")
    first = await plan(drawn)
    await draw_reservation(drawn, "10.0.0.2", "default/web")
    await draw_reservation(drawn, "10.0.0.9", "default/web")
    lasting = confirmed(first, await plan(drawn))
    assert {each.subject for each in lasting.mended_by_repair} == {"10.0.0.1"}


async def plan(drawn: DrawnCluster) -> Migration:
    return plan_migration(await read_situation(drawn.cluster, SYSTEM_NAMESPACE))
