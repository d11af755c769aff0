import msgspec
import pytest

from podtide.cni.errors import (
    ErrorCode,
    ForeignIpam,
    IncompatibleVersion,
    InvalidEnvironment,
    NotAvailable,
    Undecodable,
    UnknownContainer,
    code_for,
    error_answer,
)
from podtide.core.errors import (
    FixError,
    InvalidConfig,
    InvalidRange,
    InvalidSlice,
    MixedFamilies,
    RangeFull,
    RetryError,
    StopError,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (IncompatibleVersion("x"), 1),
        (UnknownContainer("x"), 3),
        (InvalidEnvironment("x"), 4),
        (OSError("x"), 5),
        (Undecodable("x"), 6),
        (InvalidConfig("x"), 7),
        (ForeignIpam("x"), 7),
        (InvalidRange("x"), 7),
        (MixedFamilies("x"), 7),
        (InvalidSlice("x"), 7),
        (RetryError("x"), 11),
        (RangeFull("x"), 11),
        (NotAvailable("x"), 50),
        (FixError("x"), 100),
        (StopError("x"), 101),
        (ZeroDivisionError("x"), 102),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_the_kind_of_an_error_decides_its_code(error: Exception, code: int) -> None:
    assert code_for(error) == code


def test_an_error_is_told_in_the_callers_version_with_its_one_line_as_the_message() -> None:
    answer = error_answer(RangeFull("no address of 10.0.0.0/30 is free"), "0.4.0")
    assert msgspec.json.decode(msgspec.json.encode(answer)) == {
        "cniVersion": "0.4.0",
        "code": 11,
        "msg": "no address of 10.0.0.0/30 is free",
        "details": "a passing condition: the same call may succeed later",
    }


def test_an_error_without_words_is_told_by_its_name() -> None:
    assert error_answer(TimeoutError(), "1.1.0").msg == "TimeoutError"


def test_every_code_has_a_meaning() -> None:
    assert all(code.meaning for code in ErrorCode)


def test_codes_of_our_own_start_at_100() -> None:
    assert [code for code in ErrorCode if code >= 100] == [
        ErrorCode.REFUSED,
        ErrorCode.BROKEN_INVARIANT,
        ErrorCode.UNEXPECTED,
    ]
