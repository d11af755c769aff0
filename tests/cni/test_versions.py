import msgspec
import pytest

from podtide.cni.errors import IncompatibleVersion
from podtide.cni.versions import SUPPORTED, Verb, at_least, require_verb, spoken, version_answer


@pytest.mark.parametrize("version", SUPPORTED)
def test_every_version_since_the_first_is_spoken(version: str) -> None:
    assert spoken(version) == version


def test_a_caller_that_states_no_version_means_the_first() -> None:
    assert spoken("") == "0.1.0"


@pytest.mark.parametrize("version", ["0.5.0", "1.2.0", "1.1", "v1.0.0", "1.1.0\n"])
def test_any_other_version_is_refused_with_the_list_of_those_that_are_spoken(version: str) -> None:
    with pytest.raises(IncompatibleVersion, match=r"is not supported; use one of 0\.1\.0, .*1\.1\.0$"):
        spoken(version)


@pytest.mark.parametrize(
    ("verb", "since"),
    [
        (Verb.ADD, "0.1.0"),
        (Verb.DEL, "0.1.0"),
        (Verb.VERSION, "0.1.0"),
        (Verb.CHECK, "0.4.0"),
        (Verb.STATUS, "1.1.0"),
        (Verb.GC, "1.1.0"),
    ],
)
def test_a_verb_exists_from_the_version_that_brought_it(verb: Verb, since: str) -> None:
    for version in SUPPORTED:
        if at_least(version, since):
            require_verb(verb, version)
        else:
            with pytest.raises(IncompatibleVersion, match=f"needs {since} or later"):
                require_verb(verb, version)


def test_version_says_the_callers_version_back_and_all_that_are_spoken() -> None:
    assert msgspec.json.decode(msgspec.json.encode(version_answer("0.4.0"))) == {
        "cniVersion": "0.4.0",
        "supportedVersions": ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"],
    }


def test_version_without_a_version_answers_in_the_latest() -> None:
    assert version_answer().cni_version == "1.1.0"
