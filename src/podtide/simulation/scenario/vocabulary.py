"""The words of scenario files with what each takes, derived from the functions that carry them out."""

from collections.abc import Awaitable, Callable, Mapping
from inspect import getdoc, signature
from typing import Any, get_type_hints

from msgspec import Struct

from podtide.simulation.scenario.measures import MEASURES
from podtide.simulation.scenario.network_words import NETWORK_MEASURES, NETWORK_STEPS
from podtide.simulation.scenario.steps import STEPS
from podtide.simulation.scenario.values import Amount


class Word(Struct, frozen=True, kw_only=True):
    """An action, or a measure."""

    words: str
    meaning: str
    subject: str
    """The name of its parameter: an action's value, a measure's node, subnet or network; "" if it has none."""
    takes: Any
    """The type of an action's value, or of a measure's expected value."""
    function: Callable[..., Awaitable[Any]]

    @property
    def example(self) -> str:
        """How it is written."""
        return f"{self.words}: {_example_of(self.takes)}" if self.takes else self.words


_EXPECTED = {Amount: "5", bool: "yes", str: "SubnetShort", list[int]: "[15, 31]"}
"""Examples of measures' expected values. The types of actions' values have their own."""


def _example_of(kind: Any) -> str:
    for meta in getattr(kind, "__metadata__", ()):
        return str(meta.examples[0])
    return _EXPECTED[kind]


def _step(words: str, function: Callable[..., Awaitable[None]]) -> Word:
    subject = _second_parameter(function)
    takes = get_type_hints(function, include_extras=True)[subject] if subject else None
    return Word(words=words, meaning=getdoc(function) or "", subject=subject, takes=takes, function=function)


def _measure(words: str, function: Callable[..., Awaitable[Any]]) -> Word:
    answers = get_type_hints(function)["return"]
    return Word(
        words=words,
        meaning=getdoc(function) or "",
        subject=_second_parameter(function),
        takes=Amount if answers is int else answers,
        function=function,
    )


def _second_parameter(function: Callable[..., Awaitable[Any]]) -> str:
    _stage, *others = signature(function).parameters
    return others[0] if others else ""


STEP_WORDS: Mapping[str, Word] = {
    words: _step(words, function) for words, function in {**STEPS, **NETWORK_STEPS}.items()
}
MEASURE_WORDS: Mapping[str, Word] = {
    words: _measure(words, function) for words, function in {**MEASURES, **NETWORK_MEASURES}.items()
}
