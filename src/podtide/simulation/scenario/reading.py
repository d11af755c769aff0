"""Reads scenario files. Unknown words are refused, with their line and what could be there instead."""

import re
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from podtide.core.errors import InvalidInput
from podtide.resources.names import is_object_name
from podtide.runtime.settings import Settings, load_settings
from podtide.simulation.nodes.kubelet import KubeletHabits
from podtide.simulation.nodes.network_definitions import Definition, described_network
from podtide.simulation.scenario.document import Expectation, Scenario, ScenarioAction, ScenarioStep
from podtide.simulation.scenario.positions import Document, InvalidScenario
from podtide.simulation.scenario.values import Seconds, read_value
from podtide.simulation.scenario.vocabulary import MEASURE_WORDS, STEP_WORDS, Word
from podtide.simulation.world.embedded_world import SUBNET

_SAY, _EXPECT, _WITHIN, _FOR = "say", "expect", "within", "for"
_REPEAT, _STORY = "repeat", "story"
_UNKNOWN = re.compile(r"object contains unknown field `(.*)`")
_AT = re.compile(r"(?P<words>.*?)(?: - at `(?:key in )?(?P<path>\$.*)`)?", re.DOTALL)


class _Words(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=lambda name: name.replace("_", " ")
):
    """A mapping whose keys are words: `at_once` is `at once`."""


class _Kubelets(_Words, frozen=True, kw_only=True):
    """The timing of kubelets."""

    at_once: int = KubeletHabits().at_once
    sandbox_takes: Seconds = Seconds(KubeletHabits().sandbox_seconds)
    retry_after: Seconds = Seconds(KubeletHabits().retry_seconds)


_Nodes = int | list[str] | dict[str, str]


class _Cluster(_Words, frozen=True, kw_only=True):
    """One of several clusters."""

    nodes: _Nodes


class _Network(_Words, frozen=True, kw_only=True):
    """A secondary network."""

    range: str
    slice: str = ""


class _ScenarioFile(_Words, frozen=True, kw_only=True):
    """The keys of a scenario file."""

    title: str
    why: str
    trap: str = ""
    story: list[Any]
    nodes: _Nodes | None = None
    clusters: dict[str, _Cluster] = {}
    subnet: str = ""
    subnets: dict[str, str] = {}
    networks: dict[str, _Network] = {}
    settings: dict[str, Any] = {}
    kubelets: _Kubelets = _Kubelets()
    grants_take: Seconds = Seconds(0.0)
    cluster_subnets: bool = True


def read_scenario(path: Path) -> Scenario:
    """The scenario in a file; InvalidScenario if it has an error."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidScenario(f"{path}: cannot be read: {error}") from error
    return parse_scenario(str(path), text)


def parse_scenario(file: str, text: str) -> Scenario:
    """The scenario in a text; `file` is its name in errors."""
    document = Document(file, text)
    written = _read_frame(document)
    return Scenario(
        file=file,
        title=written.title,
        why=" ".join(written.why.split()),
        trap=" ".join(written.trap.split()),
        subnets=_subnets(document, written),
        clusters=_clusters(document, written),
        networks=tuple(
            _network(document, number, name, each)
            for number, (name, each) in enumerate(written.networks.items(), 1)
        ),
        settings=_settings(document, written.settings),
        habits=KubeletHabits(
            at_once=written.kubelets.at_once,
            sandbox_seconds=written.kubelets.sandbox_takes,
            retry_seconds=written.kubelets.retry_after,
        ),
        grants_take_seconds=written.grants_take,
        cluster_subnets=written.cluster_subnets,
        story=_steps(document, "$", "", written.story),
    )


def _subnets(document: Document, written: _ScenarioFile) -> dict[str, str]:
    if bool(written.subnet) == bool(written.subnets):
        raise document.refuse("$", "give either a subnet, such as 10.0.0.0/24, or subnets by their names")
    return written.subnets or {SUBNET: written.subnet}


def _clusters(document: Document, written: _ScenarioFile) -> dict[str, dict[str, str]]:
    if (written.nodes is None) != bool(written.clusters):
        raise document.refuse("$", "give either nodes, or clusters by their names, each with its nodes")
    for name in written.clusters:
        if not is_object_name(name):
            raise document.refuse(
                f"$.clusters.{name}", f"{name!r} is not a valid name of a cluster: give one such as west"
            )
    if written.nodes is not None:
        return {"": _nodes(written.nodes)}
    return {name: _nodes(cluster.nodes) for name, cluster in written.clusters.items()}


def _nodes(written: _Nodes) -> dict[str, str]:
    if isinstance(written, int):
        return {f"node-{number}": "" for number in range(1, written + 1)}
    return written if isinstance(written, dict) else dict.fromkeys(written, "")


def _network(document: Document, number: int, name: str, written: _Network) -> Definition:
    try:
        return described_network(name, number, written.range, written.slice)
    except InvalidInput as error:
        raise document.refuse(f"$.networks.{name}", str(error)) from None


def _settings(document: Document, written: dict[str, Any]) -> Settings:
    try:
        return load_settings({}, {name: str(value) for name, value in written.items()})
    except InvalidInput as error:
        raise document.refuse("$.settings", str(error)) from None


# Scenes


def _steps(document: Document, path: str, before: str, written: list[Any]) -> tuple[ScenarioStep, ...]:
    """The steps of a story, or of a part that is repeated within it; `before` is the prefix of their numbers."""
    return tuple(
        step
        for index, each in enumerate(written)
        for step in _steps_of(document, f"{path}.{_STORY}[{index}]", f"{before}{index + 1}", each)
    )


def _steps_of(document: Document, path: str, number: str, written: Any) -> tuple[ScenarioStep, ...]:
    """The step that is written, or those that it repeats."""
    if isinstance(written, str):
        written = {written: None}
    if not isinstance(written, dict):
        raise document.refuse(path, f"step {number} is {written!r}: give {_EXPECT}, {_SAY}, or a step")
    rest = dict(written)
    step = ScenarioStep(line=document.line(path), number=number, say=str(rest.pop(_SAY, "")))
    if _REPEAT in rest:
        return _repeated(document, path, step, rest)
    return (_step(document, path, step, rest),)


def _repeated(
    document: Document, path: str, step: ScenarioStep, rest: dict[str, Any]
) -> tuple[ScenarioStep, ...]:
    times, story = rest.pop(_REPEAT), rest.pop(_STORY, None)
    if (
        not isinstance(times, int)
        or isinstance(times, bool)
        or times < 1
        or not isinstance(story, list)
        or rest
    ):
        raise document.refuse(path, f"{_REPEAT}: give how often, and beside it a {_STORY} of its own")
    steps = _steps(document, path, f"{step.number}.", story)
    return (
        *([step] if step.say else []),
        *(
            structs.replace(each, during=f", round {place} of {times}{each.during}")
            for place in range(1, times + 1)
            for each in steps
        ),
    )


def _step(document: Document, path: str, step: ScenarioStep, rest: dict[str, Any]) -> ScenarioStep:
    if _EXPECT in rest:
        return _expecting(document, path, step, rest)
    if not rest and step.say:
        return step
    if len(rest) != 1:
        words = ", ".join(map(repr, rest)) or "nothing"
        raise document.refuse(
            path, f"step {step.number} is {words}: give one step at a time, each after a dash"
        )
    ((words, value),) = rest.items()
    return structs.replace(step, action=_action(document, path, words, value))


def _action(document: Document, path: str, words: str, value: Any) -> ScenarioAction:
    word = STEP_WORDS.get(words)
    if word is None:
        raise document.refuse(
            path, f"{words!r} is not a step: give one of {', '.join(STEP_WORDS)}, {_REPEAT}, {_EXPECT}"
        )
    if not word.subject:
        if value is not None:
            raise document.refuse(f"{path}.{words}", f"{words!r} takes nothing: write the words alone")
        return ScenarioAction(word, None)
    return ScenarioAction(word, _convert(document, value, word, f"{path}.{words}"))


def _expecting(document: Document, path: str, step: ScenarioStep, rest: dict[str, Any]) -> ScenarioStep:
    expected = rest.pop(_EXPECT)
    within, lasting = (_duration(document, path, rest, words) for words in (_WITHIN, _FOR))
    for words in rest:
        raise document.refuse(
            path, f"{words!r} does not go with {_EXPECT}: give {_WITHIN}, {_FOR} or {_SAY} beside it"
        )
    if not isinstance(expected, dict) or not expected:
        raise document.refuse(f"{path}.{_EXPECT}", f"{_EXPECT}: give what must be so, such as pods ready: 3")
    expectations = tuple(
        expectation
        for words, value in expected.items()
        for expectation in _expectations(document, f"{path}.{_EXPECT}", words, value)
    )
    return structs.replace(step, expectations=expectations, within_seconds=within, for_seconds=lasting)


def _expectations(document: Document, path: str, words: str, value: Any) -> list[Expectation]:
    word = MEASURE_WORDS.get(words)
    if word is None:
        raise document.refuse(
            f"{path}.{words}", f"{words!r} cannot be expected: give one of {', '.join(MEASURE_WORDS)}"
        )
    if isinstance(value, dict):
        return [_expectation(document, path, word, subject, each) for subject, each in value.items()]
    return [_expectation(document, path, word, "", value)]


def _expectation(document: Document, path: str, word: Word, subject: str, value: Any) -> Expectation:
    path = f"{path}.{word.words}.{subject}" if subject else f"{path}.{word.words}"
    if subject and not word.subject:
        raise document.refuse(path, f"{word.words!r} is one for the whole cluster: give it without names")
    return Expectation(word, subject, _convert(document, value, word, path))


def _duration(document: Document, path: str, rest: dict[str, Any], words: str) -> Seconds:
    try:
        return read_value(rest.pop(words, "0s"), Seconds)
    except msgspec.ValidationError as error:
        raise document.refuse(f"{path}.{words}", f"{words}: {error}") from None


def _convert(document: Document, value: Any, word: Word, path: str) -> Any:
    """The value of a word, converted to its type."""
    try:
        return read_value(value, word.takes)
    except msgspec.ValidationError as error:
        words, inner = _parted(error)
        raise document.refuse(
            path + inner.removeprefix("$"), f"{word.words}: {words}: give something such as {word.example}"
        ) from None


def _read_frame(document: Document) -> _ScenarioFile:
    """The keys of the file; the steps are converted later."""
    try:
        return read_value(document.content, _ScenarioFile)
    except msgspec.ValidationError as error:
        words, path = _parted(error)
        if unknown := _UNKNOWN.fullmatch(words):
            known = structs.fields(_struct_at(path))
            allowed = ", ".join(field.encode_name for field in known)
            path, words = f"{path}.{unknown[1]}", f"{unknown[1]!r} is not known: give some of {allowed}"
        raise document.refuse(path, words) from None


def _struct_at(path: str) -> type[_Words]:
    if path == "$":
        return _ScenarioFile
    return _Kubelets if path == "$.kubelets" else _Cluster


def _parted(error: msgspec.ValidationError) -> tuple[str, str]:
    """The message, and the path that it is about."""
    match = _AT.fullmatch(str(error))
    assert match is not None  # it takes anything
    words = match["words"]
    is_msgspecs_own = words.startswith(("Expected", "Object"))
    return words[:1].lower() + words[1:] if is_msgspecs_own else words, match["path"] or "$"
