"""The chart's README, made from Chart.yaml and from the comments in values.yaml.

The comments are the only description of a value, so no other table can contradict them. They are marked as for helm-docs, `# --`,
which is not used itself: it would be one more Go program, on Helm 3's libraries, to pin and to build for one table.

A key below such a comment is one row, whatever its value is; a map without one is a group, whose keys are rows. A line `## …`
is a heading.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import yaml
from msgspec import Struct

BEGINNING = """\
# {name}

<!-- Made from Chart.yaml and values.yaml by `make manifests`: edit those. -->

{description}. This is the Helm chart of podtide {appVersion}, for Kubernetes {oldest} or newer.

```bash
helm install podtide deploy/chart --namespace kube-system \\
    --set image.repository=images.example.org/podtide --set 'subnets[0].cidr=10.1.0.0/16'
```

[installing.md](../../docs/installing.md) says what there has to be before, what that does, and how podtide is removed again.

## Values

A value that is misspelt, or of another type, is refused by its name before anything is changed. One without a default is empty."""
BAR = r"\|"
"""A bar within a cell."""


class UndescribedValue(Exception):
    """A value without a comment that says what it is."""


class Row(Struct, frozen=True):
    """One value, as the README has it."""

    name: str
    """With those of the groups that it is in: `cni.type`."""
    default: str
    description: str
    heading: str

    @property
    def line(self) -> str:
        """The row in the table's own syntax."""
        cells = (f"`{self.name}`", f"`{self.default}`" if self.default else "", self.description)
        return f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |"


def readme(chart: Path) -> str:
    """What is to be in the README of the chart in that directory."""
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    oldest = about["kubeVersion"].removeprefix(">=").removesuffix(".0-0")
    lines = [BEGINNING.format(**about, oldest=oldest)]
    heading = ""
    for row in rows((chart / "values.yaml").read_text()):
        if row.heading != heading:
            heading = row.heading
            lines += ["", f"### {heading}", "", "| Value | Default | What it is |", "|---|---|---|"]
        lines.append(row.line)
    return "\n".join([*lines, ""])


def rows(text: str) -> Iterator[Row]:
    """The values in the order of the file. UndescribedValue names one that has no comment."""
    document = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(document, yaml.MappingNode)
    yield from _rows_in(document, yaml.safe_load(text), text.splitlines(), "")


def _rows_in(
    node: yaml.MappingNode, values: dict[str, object], lines: list[str], prefix: str
) -> Iterator[Row]:
    for key, inner in node.value:
        name, value, line = f"{prefix}{key.value}", values[key.value], key.start_mark.line
        description = _description_above(line, lines)
        if description:
            yield Row(name, _shown(value), description, _heading_above(line, lines))
        elif isinstance(value, dict) and value:
            yield from _rows_in(inner, value, lines, f"{name}.")
        else:
            raise UndescribedValue(f"values.yaml: {name} has no description: put `# -- …` above it")


def _description_above(line: int, lines: list[str]) -> str:
    """The comment from its `# --` on, as one line; "" if the lines directly above have none."""
    words: list[str] = []
    for above in reversed(lines[:line]):
        comment = re.fullmatch(r" *# (-- )?(.*)", above)
        if comment is None:
            return ""
        words.insert(0, comment[2].strip())
        if comment[1]:
            return " ".join(words)
    return ""


def _heading_above(line: int, lines: list[str]) -> str:
    return next((each.removeprefix("## ") for each in reversed(lines[:line]) if each.startswith("## ")), "")


def _shown(value: object) -> str:
    if value in ("", {}, []):
        return ""
    return value if isinstance(value, str) else json.dumps(value)
