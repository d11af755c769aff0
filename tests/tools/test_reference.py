"""The pages of reference say what the code says, and nothing in the code is left out of them."""

import ast
import re

import pytest

from podtide.resources.crds import crds
from reference.markdown import Undescribed, described, table
from reference.notices import CONDITIONS, EVENTS
from reference.pages import DIRECTORY, pages
from repository_files import ROOT

MADE = pages()

SOURCES = ROOT / "src" / "podtide"
TELLING = [
    *sorted((SOURCES / "controller").rglob("*.py")),
    SOURCES / "core" / "subnet" / "batch.py",
    SOURCES / "resources" / "config_confirmation.py",
]
OTHER_WORDS = {
    *("Controller", "ControllerCounts", "ControllerOptions", "Fullness"),
    *("InternalIP", "NoExecute", "NoSchedule"),
}
"""Words in CamelCase that are names of classes, and Kubernetes' own."""
NO_CHANGE = {"Unchanged"}
"""The batch's word for a decision of which no Event tells."""


@pytest.mark.parametrize("name", MADE)
def test_a_page_is_what_the_code_makes_of_it(name: str) -> None:
    assert (DIRECTORY / name).read_text() == MADE[name], "run `make reference`"


def test_there_is_no_page_that_the_code_does_not_make() -> None:
    assert {path.name for path in DIRECTORY.iterdir()} == set(MADE)


def reasons_in_code() -> set[str]:
    """The strings in CamelCase in which the controller and what it decides by name Events, conditions and reasons."""
    return {
        node.value
        for path in TELLING
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"[A-Z][a-z]+(?:[A-Z][A-Za-z]*)*", node.value)
    }


def test_every_event_and_condition_of_the_code_is_documented_and_no_other() -> None:
    events = {name for of_kind in EVENTS.values() for name in of_kind}
    conditions = {name for of_kind in CONDITIONS.values() for name in of_kind}
    reasons = {
        reason for of_kind in CONDITIONS.values() for of_type in of_kind.values() for reason in of_type
    }
    assert events | conditions | reasons == reasons_in_code() - OTHER_WORDS - NO_CHANGE


@pytest.mark.parametrize("definition", crds(), ids=lambda each: each["spec"]["names"]["kind"])
def test_every_field_of_a_kind_is_on_its_page(
    definition: dict[str, dict[str, list[dict[str, object]]]],
) -> None:
    text = str(definition["spec"]["versions"][0]["schema"])
    fields = set(re.findall(r"'(\w+)': \{'(?:type|description|x-|properties|enum)", text)) - {
        *("openAPIV3Schema", "properties", "items", "additionalProperties", "apiVersion", "kind", "metadata")
    }
    missing = [field for field in fields if not re.search(rf"\b{field}\b", MADE["custom-resources.md"])]
    assert missing == []
    assert fields


def test_what_has_no_description_is_named() -> None:
    with pytest.raises(Undescribed, match="--colour has no description"):
        described("  ", "--colour")


def test_a_table_without_rows_is_left_out_and_bars_are_escaped() -> None:
    assert list(table(("A",), [])) == []
    assert list(table(("A", "B"), [("x|y", "")])) == ["| A | B |", "|---|---|", "| x\\|y | |", ""]
