"""A scenario as it was read: a cluster or several, and steps that are played in order."""

from typing import Any

from msgspec import Struct, to_builtins

from podtide.runtime.settings import Settings
from podtide.simulation.nodes.kubelet import KubeletHabits
from podtide.simulation.nodes.network_definitions import Definition
from podtide.simulation.scenario.values import Amount
from podtide.simulation.scenario.vocabulary import Word


class ScenarioAction(Struct, frozen=True):
    """Something that a step does."""

    word: Word
    value: Any

    def __str__(self) -> str:
        return f"{self.word.words}: {shown(self.value)}" if self.word.subject else self.word.words


class Expectation(Struct, frozen=True):
    """A value that a measure must have."""

    word: Word
    subject: str
    """A node, a subnet, or "" for the whole cluster."""
    expected: Any

    def __str__(self) -> str:
        return f"{self.of(self.subject)} {shown(self.expected)}"

    def of(self, subject: str) -> str:
        """The measure and its subject, in words."""
        return f"{self.word.words} of {subject}" if subject else self.word.words

    def is_met(self, measured: Any) -> bool:
        """Whether what was measured is as expected."""
        expected = self.expected
        return expected.allows(measured) if isinstance(expected, Amount) else bool(expected == measured)


class ScenarioStep(Struct, frozen=True, kw_only=True):
    """One step: a sentence to print, an action, or expectations."""

    line: int
    """The line in the file where it begins."""
    number: str
    """Its number in the story; `3.1` is the first of those that step 3 repeats."""
    during: str = ""
    """The round, where it is repeated."""
    say: str = ""
    action: ScenarioAction | None = None
    expectations: tuple[Expectation, ...] = ()
    within_seconds: float = 0.0
    """How long it may take until all expectations are met at once."""
    for_seconds: float = 0.0
    """How long they must stay met."""


class Scenario(Struct, frozen=True, kw_only=True):
    """The content of a scenario file."""

    file: str
    title: str
    why: str
    trap: str
    """What another program does wrong here; "" if the scenario is not about that."""
    subnets: dict[str, str]
    """CIDRs by name; the first is the default subnet."""
    clusters: dict[str, dict[str, str]]
    """By their names, with the subnets of their nodes at the start; "" is the default subnet.

    The name of a single cluster is "".
    """
    networks: tuple[Definition, ...]
    """The secondary networks that every pod is attached to."""
    settings: Settings
    habits: KubeletHabits
    grants_take_seconds: float
    cluster_subnets: bool
    story: tuple[ScenarioStep, ...]

    def place(self, step: ScenarioStep) -> str:
        """The file, line and number of a step, for messages."""
        return f"{self.file}:{step.line}: step {step.number}{step.during}"


def shown(value: Any) -> str:
    """A value as it is written in a file."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key} {shown(each)}" for key, each in value.items())
    if isinstance(value, Struct):
        return shown(to_builtins(value)) or "nothing"
    if isinstance(value, list):
        return ", ".join(map(shown, value)) or "none"
    return str(value)
