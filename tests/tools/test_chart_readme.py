from pathlib import Path

import pytest
import yaml

from chart_readme import Row, UndescribedValue, readme, rows
from manifests import CHART

VALUES = """\
# Of the file as a whole.

## First things

# For readers of this file.
# -- what it is,
# in two lines
one: 1
group:
  # -- may be | empty
  two: ""

## More

# -- a map as a whole
three:
  four: [5]
"""


def test_a_comment_is_a_row_and_a_map_without_one_a_group() -> None:
    assert list(rows(VALUES)) == [
        Row("one", "1", "what it is, in two lines", "First things"),
        Row("group.two", "", "may be | empty", "First things"),
        Row("three", '{"four": [5]}', "a map as a whole", "More"),
    ]


def test_a_bar_in_a_description_does_not_end_its_cell() -> None:
    assert [row.line for row in rows(VALUES)][1] == r"| `group.two` |  | may be \| empty |"


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ("one: 1", "one"),
        ("group:\n  # for readers of this file\n  two: 2", "group.two"),
        ("# -- of a line further up\n\none: {}", "one"),
        ("# -- of the first\none: 1\ntwo: 2", "two"),
    ],
)
def test_a_value_without_a_description_is_refused_by_its_name(values: str, name: str) -> None:
    with pytest.raises(UndescribedValue, match=rf"\b{name} has no description"):
        list(rows(values))


def test_a_heading_is_shown_once_with_a_table_below(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text(VALUES)
    (tmp_path / "Chart.yaml").write_text((CHART / "Chart.yaml").read_text())
    table = readme(tmp_path).partition("\n### ")[2].splitlines()
    assert table == [
        "First things",
        "",
        "| Value | Default | What it is |",
        "|---|---|---|",
        "| `one` | `1` | what it is, in two lines |",
        r"| `group.two` |  | may be \| empty |",
        "",
        "### More",
        "",
        "| Value | Default | What it is |",
        "|---|---|---|",
        '| `three` | `{"four": [5]}` | a map as a whole |',
    ]


def test_the_readme_of_the_chart_is_made_from_its_values() -> None:
    """Without Helm, so that who edits a comment hears of it from the fast tests."""
    text = (CHART / "README.md").read_text()
    assert text == readme(CHART), "run `make manifests`"
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert f"the Helm chart of podtide {about['appVersion']}, for Kubernetes 1.32 or newer" in text
