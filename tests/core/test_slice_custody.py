"""What is to be done with a node's own pool."""

import pytest

from podtide.core.machine_identity import UNKNOWN_MACHINE, MachineIdentity
from podtide.core.networks.slice_custody import Custody, CustodyStep, is_live, next_step

NOW, QUARANTINE = 1000.0, 360.0
RESTED, RESTING = NOW - QUARANTINE, NOW - QUARANTINE + 1


MACHINE = MachineIdentity("m", "s", "b")


def step(
    owner: str,
    node: str,
    *,
    gone_since: float | None = None,
    in_use: bool = False,
    is_confirmed: bool = True,
    is_inert: bool = False,
    machine: MachineIdentity = UNKNOWN_MACHINE,
) -> tuple[CustodyStep, bool]:
    pool = Custody(
        owner_uid=owner,
        gone_since=gone_since,
        in_use=in_use,
        is_confirmed=is_confirmed,
        is_inert=is_inert,
        machine=MACHINE,
    )
    found = next_step(pool, node, machine, now=NOW, quarantine_seconds=QUARANTINE)
    return found, is_live(pool, found)


@pytest.mark.parametrize("in_use", [True, False])
def test_the_pool_of_a_node_that_is_there_is_kept(in_use: bool) -> None:
    assert step("u1", "u1", in_use=in_use) == (CustodyStep.KEEP, in_use)


@pytest.mark.parametrize("node", ["u1", "u2"])
def test_an_inert_pool_is_confirmed_for_the_node_that_is_there_whichever_it_was_made_for(node: str) -> None:
    assert step("u1", node, is_confirmed=False, is_inert=True) == (CustodyStep.CONFIRM, False)


def test_an_inert_pool_of_a_node_that_is_gone_is_collected_at_once() -> None:
    assert step("u1", "", is_confirmed=False, is_inert=True) == (CustodyStep.COLLECT, False)


def test_a_pool_that_is_used_and_not_confirmed_is_confirmed_and_otherwise_treated_like_any() -> None:
    assert step("u1", "u1", in_use=True, is_confirmed=False) == (CustodyStep.CONFIRM, True)
    assert step("u1", "u2", in_use=True, is_confirmed=False) == (CustodyStep.MARK, True)
    assert step("u1", "u2", gone_since=RESTED, is_confirmed=False) == (CustodyStep.HAND_OVER, False)


def test_a_pool_that_names_no_node_is_adopted_by_the_one_that_is_there() -> None:
    assert step("", "u1") == (CustodyStep.ADOPT, False)
    assert step("", "u1", in_use=True) == (CustodyStep.ADOPT, True)


@pytest.mark.parametrize("owner", ["u1", ""])
@pytest.mark.parametrize("in_use", [True, False])
def test_when_its_node_is_gone_the_quarantine_begins(owner: str, in_use: bool) -> None:
    assert step(owner, "", in_use=in_use) == (CustodyStep.MARK, True)


@pytest.mark.parametrize("machine", [UNKNOWN_MACHINE, MachineIdentity("m", "s2", "b")])
def test_when_another_machine_bears_the_name_the_quarantine_of_what_pods_hold_begins_too(
    machine: MachineIdentity,
) -> None:
    assert step("u1", "u2", in_use=True, machine=machine) == (CustodyStep.MARK, True)
    assert step("u1", "u2", in_use=True, machine=machine, gone_since=RESTING) == (CustodyStep.REST, True)


def test_during_the_quarantine_the_slice_is_nobody_elses() -> None:
    assert step("u1", "", gone_since=RESTING) == (CustodyStep.REST, True)


@pytest.mark.parametrize("gone_since", [None, RESTING])
def test_a_node_that_bears_the_name_has_a_pool_at_once_in_which_nobody_holds_anything(
    gone_since: float | None,
) -> None:
    assert step("u1", "u2", gone_since=gone_since) == (CustodyStep.HAND_OVER, False)


@pytest.mark.parametrize("gone_since", [None, RESTING])
@pytest.mark.parametrize("boot", ["b", "b2"])
def test_the_same_machine_has_its_pool_again_at_once(gone_since: float | None, boot: str) -> None:
    machine = MachineIdentity("m", "s", boot)
    assert step("u1", "u2", gone_since=gone_since, in_use=True, machine=machine) == (
        CustodyStep.HAND_OVER,
        True,
    )


def test_a_quarantine_that_began_in_the_future_begins_now() -> None:
    assert step("u1", "", gone_since=NOW + 400 * 86_400, in_use=True) == (CustodyStep.MARK, True)


def test_after_the_quarantine_an_empty_pool_is_collected() -> None:
    assert step("u1", "", gone_since=RESTED) == (CustodyStep.COLLECT, False)


def test_after_the_quarantine_a_pool_that_pods_use_is_held() -> None:
    assert step("u1", "", gone_since=RESTED, in_use=True) == (CustodyStep.HOLD, True)


@pytest.mark.parametrize("owner", ["u1", ""])
def test_after_the_quarantine_a_node_that_bears_the_name_takes_the_pool_over(owner: str) -> None:
    assert step(owner, "u2", gone_since=RESTED) == (CustodyStep.HAND_OVER, False)
    assert step(owner, "u2", gone_since=RESTED, in_use=True) == (CustodyStep.HAND_OVER, True)


def test_a_node_that_was_thought_to_be_gone_and_is_not_has_its_pool_at_once() -> None:
    assert step("u1", "u1", gone_since=RESTING) == (CustodyStep.HAND_OVER, False)
