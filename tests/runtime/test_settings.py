from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.allocator.limits import MOST_WANTED
from podtide.core.pool.pacing import Pace
from podtide.core.subnet.batch import BatchDelays
from podtide.core.subnet.exhaustion import Thresholds
from podtide.core.subnet.scaler import Scaler
from podtide.runtime.settings import SETTINGS, InvalidSetting, Settings, load_settings


def test_the_defaults_are_those_of_the_design() -> None:
    shown = {setting.name: setting.show(setting.default) for setting in SETTINGS}
    assert shown == {
        "batch": "16",
        "buffer": "0.5",
        "max_ips": "250",
        "lower_threshold": "0.8",
        "upper_threshold": "0.9",
        "answer_wait": "1m",
        "starved_dwell": "30s",
        "gather": "100ms",
        "gather_at_most": "500ms",
        "shrink_delay": "30s",
        "cooldown": "30s",
        "poll": "5s",
        "add_wait": "10s",
        "contact_timeout": "5m",
        "quarantine": "6m",
        "leak_grace": "5m",
        "repair_interval": "5m",
        "runs_out_warning": "720h",
        "leader_lease": "15s",
        "leader_renew_deadline": "10s",
        "leader_retry": "2s",
    }


def test_the_core_decides_by_the_same_defaults() -> None:
    settings = Settings()
    assert Scaler(settings.batch, settings.buffer, settings.max_ips) == Scaler()
    assert Thresholds(settings.lower_threshold, settings.upper_threshold) == Thresholds()
    patience = (settings.gather_seconds, settings.gather_at_most_seconds, settings.shrink_delay_seconds)
    assert Pace(*patience) == Pace()
    assert BatchDelays(settings.answer_wait_seconds, settings.starved_dwell_seconds) == BatchDelays()


def test_nothing_stated_gives_the_defaults() -> None:
    assert load_settings({}, {}) == Settings()


def test_a_flag_goes_before_the_environment_and_both_before_the_default() -> None:
    environment = {
        "PODTIDE_BATCH": "32",
        "PODTIDE_BUFFER": "0.1",
        "PODTIDE_SHRINK_DELAY": "2m",
        "HOME": "/root",
    }
    settings = load_settings(environment, {"batch": "8", "gather": "50ms"})
    assert settings == Settings(
        batch=8, buffer=Fraction(1, 10), shrink_delay_seconds=120.0, gather_seconds=0.05
    )


def test_a_fraction_is_the_decimal_that_was_written() -> None:
    assert load_settings({}, {"upper_threshold": "0.95"}).upper_threshold == Fraction(19, 20)


def test_variables_that_kubernetes_makes_for_a_service_are_let_be() -> None:
    assert (
        load_settings({"PODTIDE_SERVICE_HOST": "10.0.0.1", "PODTIDE_PORT": "tcp://10.0.0.1:80"}, {})
        == Settings()
    )


@pytest.mark.parametrize(
    "name",
    [
        "PODTIDE_ALLOCATOR_SERVICE_HOST",
        "PODTIDE_ALLOCATOR_SERVICE_PORT",
        "PODTIDE_ALLOCATOR_SERVICE_PORT_HTTPS",
        "PODTIDE_ALLOCATOR_PORT",
        "PODTIDE_ALLOCATOR_PORT_8080_TCP",
        "PODTIDE_ALLOCATOR_PORT_8080_TCP_ADDR",
        "PODTIDE_PORT_53_UDP_PROTO",
        "PODTIDE_DATABASE",
        "PODTIDE_PLUGIN",
        "PODTIDE_SOCKET",
        "podtide_batch",
        "XPODTIDE_BATCHH",
    ],
)
def test_variables_of_services_and_of_other_purposes_are_let_be(name: str) -> None:
    assert load_settings({name: "x"}, {}) == Settings()


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("PODTIDE_BATCHH", "did you mean PODTIDE_BATCH? Correct or unset it"),
        ("PODTIDE_SHRINKDELAY", "did you mean PODTIDE_SHRINK_DELAY? Correct or unset it"),
        ("PODTIDE_DATABSE", "did you mean PODTIDE_DATABASE? Correct or unset it"),
        ("PODTIDE_COLOUR", "unset it"),
        ("PODTIDE_DWELL", "unset it"),
        ("PODTIDE_", "unset it"),
    ],
)
def test_a_variable_that_begins_like_ours_and_is_none_is_refused(name: str, advice: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        load_settings({name: "8"}, {})
    assert str(refusal.value) == f"the environment variable {name} is not a setting of podtide: {advice}"


def test_no_setting_is_larger_than_an_allocator_takes() -> None:
    assert load_settings({}, {"max_ips": str(MOST_WANTED)}).max_ips == MOST_WANTED
    with pytest.raises(InvalidSetting):
        load_settings({}, {"max_ips": str(MOST_WANTED + 1)})


def test_a_flag_that_is_no_setting_is_refused_with_those_that_are() -> None:
    with pytest.raises(InvalidSetting, match=r"^setting 'bacth' does not exist: give one of batch, buffer, "):
        load_settings({}, {"bacth": "8"})


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ({"batch": "0"}, "--batch=0 is refused: give a whole number, at least 1 and at most 65536"),
        ({"batch": "1.5"}, "--batch=1.5 is refused: give a whole number, at least 1 and at most 65536"),
        (
            {"buffer": "-0.1"},
            "--buffer=-0.1 is refused: give a decimal or fraction such as 0.5 or 1/2, at least 0 and at most 65536",
        ),
        (
            {"upper_threshold": "1"},
            "--upper-threshold=1 is refused: give a decimal or fraction such as 0.5 or 1/2, more than 0 and less than 1",
        ),
        (
            {"poll": "0s"},
            "--poll=0s is refused: give a duration such as 30s or 100ms, more than 0s and at most 8760h",
        ),
        (
            {"answer_wait": "soon"},
            "--answer-wait=soon is refused: give a duration such as 30s or 100ms, at least 0s and at most 8760h",
        ),
        (
            {"batch": "12345678901234567890123"},
            "--batch=12345678901234567890123 is refused: give a whole number, at least 1 and at most 65536",
        ),
        (
            {"max_ips": "9" * 5000},
            f"--max-ips={'9' * 40}… is refused: give a whole number, at least 1 and at most 65536",
        ),
        (
            {"quarantine": "8761h"},
            "--quarantine=8761h is refused: give a duration such as 30s or 100ms, more than 0s and at most 8760h",
        ),
        (
            {"lower_threshold": "0.9"},
            "--lower-threshold=0.9 is refused: give less than upper_threshold, which is 0.9",
        ),
        ({"gather": "1s"}, "--gather=1s is refused: give at most gather_at_most, which is 500ms"),
        (
            {"contact_timeout": "6m"},
            "--contact-timeout=6m is refused: give less than quarantine, which is 6m",
        ),
        (
            {"leader_renew_deadline": "15s"},
            "--leader-renew-deadline=15s is refused: give less than leader_lease, which is 15s",
        ),
        (
            {"leader_retry": "11s"},
            "--leader-retry=11s is refused: give less than leader_renew_deadline, which is 10s",
        ),
    ],
)
def test_a_bad_value_is_one_line_that_says_what_is_allowed(flags: dict[str, str], line: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        load_settings({}, flags)
    assert str(refusal.value) == line


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ({"quarantine": "1m"}, "--quarantine=1m is refused: give more than contact_timeout, which is 5m"),
        (
            {"gather_at_most": "50ms"},
            "--gather-at-most=50ms is refused: give at least gather, which is 100ms",
        ),
        (
            {"leader_lease": "5s"},
            "--leader-lease=5s is refused: give more than leader_renew_deadline, which is 10s",
        ),
        (
            {"quarantine": "1m", "contact_timeout": "2m"},
            "--contact-timeout=2m is refused: give less than --quarantine, which is 1m",
        ),
    ],
)
def test_of_two_that_clash_the_one_that_was_given_is_refused(flags: dict[str, str], line: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        load_settings({}, flags)
    assert str(refusal.value) == line


def test_a_variable_that_clashes_is_refused_by_its_name() -> None:
    with pytest.raises(InvalidSetting) as refusal:
        load_settings({"PODTIDE_QUARANTINE": "1m"}, {})
    assert (
        str(refusal.value) == "PODTIDE_QUARANTINE=1m is refused: give more than contact_timeout, which is 5m"
    )
    with pytest.raises(
        InvalidSetting, match=r"^contact_timeout 5m is refused: give less than quarantine, which"
    ):
        Settings(quarantine_seconds=60.0)


def test_a_bad_variable_is_refused_by_its_name() -> None:
    with pytest.raises(
        InvalidSetting,
        match=r"^PODTIDE_MAX_IPS=many is refused: give a whole number, at least 1 and at most 65536$",
    ):
        load_settings({"PODTIDE_MAX_IPS": "many"}, {})


def test_settings_made_in_code_are_held_to_the_same_rules() -> None:
    with pytest.raises(
        InvalidSetting, match=r"^batch 0 is refused: give a whole number, at least 1 and at most 65536$"
    ):
        Settings(batch=0)


def test_changes_of_demand_may_be_gathered_for_as_long_as_they_may_be_at_most() -> None:
    assert Settings(gather_seconds=0.5).gather_at_most_seconds == 0.5


def test_every_setting_says_what_it_is_for() -> None:
    assert all(setting.about.purpose for setting in SETTINGS)
    assert len({setting.about.purpose for setting in SETTINGS}) == len(SETTINGS)


@given(st.data())
def test_what_is_shown_of_a_setting_can_be_given_for_it(data: Any) -> None:
    setting = data.draw(st.sampled_from(SETTINGS))
    assert (
        getattr(load_settings({}, {setting.name: setting.show(setting.default)}), setting.field)
        == setting.default
    )
    assert load_settings({setting.variable: setting.show(setting.default)}, {}) == Settings()
