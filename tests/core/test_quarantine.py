"""When the addresses of a removed Node may go to others, and to whom."""

import pytest

from podtide.core.machine_identity import UNKNOWN_MACHINE, Kinship, MachineIdentity, kinship
from podtide.core.subnet.quarantine import (
    QuarantineAction,
    QuarantineEnd,
    course_of,
    ending_of,
    is_from_the_future,
)

MACHINE = MachineIdentity("m", "s", "b")


@pytest.mark.parametrize(
    ("former", "present", "kin"),
    [
        (MACHINE, MACHINE, Kinship.SAME_BOOT),
        (MACHINE, MachineIdentity("m", "s", "b2"), Kinship.BOOTED_SINCE),
        (MACHINE, MachineIdentity("m", "s2", "b"), Kinship.UNPROVEN),
        (MACHINE, MachineIdentity("m2", "s", "b"), Kinship.UNPROVEN),
        (MACHINE, UNKNOWN_MACHINE, Kinship.UNPROVEN),
        (UNKNOWN_MACHINE, MACHINE, Kinship.UNPROVEN),
        (UNKNOWN_MACHINE, UNKNOWN_MACHINE, Kinship.UNPROVEN),
        (MachineIdentity("m", "s"), MachineIdentity("m", "s"), Kinship.UNPROVEN),
        (MachineIdentity("m", "", "b"), MachineIdentity("m", "", "b2"), Kinship.UNPROVEN),
        (MachineIdentity("", "s", "b"), MachineIdentity("", "s", "b2"), Kinship.UNPROVEN),
    ],
)
def test_only_all_three_ids_together_prove_anything(
    former: MachineIdentity, present: MachineIdentity, kin: Kinship
) -> None:
    assert kinship(former, present) is kin


@pytest.mark.parametrize(
    ("kin", "seconds_left", "hold", "witnessed", "course"),
    [
        (Kinship.SAME_BOOT, 0.0, False, True, QuarantineAction.MOVE),
        (Kinship.SAME_BOOT, 9.0, True, False, QuarantineAction.MOVE),
        (Kinship.BOOTED_SINCE, 9.0, False, True, QuarantineAction.END),
        (Kinship.BOOTED_SINCE, 9.0, True, True, QuarantineAction.END),
        (Kinship.BOOTED_SINCE, 9.0, False, False, QuarantineAction.WAIT),
        (Kinship.BOOTED_SINCE, 0.0, True, False, QuarantineAction.END),
        (Kinship.UNPROVEN, 9.0, False, True, QuarantineAction.WAIT),
        (Kinship.UNPROVEN, 0.0, False, True, QuarantineAction.END),
        (Kinship.UNPROVEN, 0.0, True, True, QuarantineAction.HOLD),
        (Kinship.UNPROVEN, 9.0, True, False, QuarantineAction.HOLD),
    ],
)
def test_what_becomes_of_a_quarantine(
    kin: Kinship, seconds_left: float, hold: bool, witnessed: bool, course: QuarantineAction
) -> None:
    assert course_of(kin, seconds_left, hold=hold, witnessed=witnessed) is course


def test_what_a_living_pod_shows_is_not_free() -> None:
    ending = ending_of(["10.0.0.1", "10.0.0.2", "10.0.0.3"], {"10.0.0.2", "10.9.9.9"})
    assert ending == QuarantineEnd(free=("10.0.0.1", "10.0.0.3"), shown=("10.0.0.2",))


def test_a_quarantine_that_began_by_a_clock_that_was_ahead_is_known_by_that() -> None:
    assert is_from_the_future(began=400 * 86_400.0, now=100.0)
    assert not is_from_the_future(began=100.0, now=100.0)
