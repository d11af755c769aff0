"""Which of several statements counts."""

from podtide.core.agreement import Agreement, agree


def test_who_is_alone_is_right() -> None:
    assert agree(["/24"], [False]) == Agreement(0, ())


def test_all_who_say_the_same_are_right_whatever_is_in_force() -> None:
    assert agree(["/24", "/24"], [False, False]) == Agreement(0, ())


def test_where_they_differ_what_is_in_force_stays() -> None:
    assert agree(["/26", "/24", "/24", "/28"], [False, True, True, False]) == Agreement(1, (0, 3))


def test_where_they_differ_and_nobody_states_what_is_in_force_nobody_is_right() -> None:
    assert agree(["/26", "/24"], [False, False]) == Agreement(None, (0, 1))
