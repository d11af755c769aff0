"""podtide's figures beside a peer's, in Markdown and, line by line as they come, for a terminal."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from peers.contenders import Contender, Kind
from peers.figures import Figure, times_better

_NOTHING = "-"
_LABEL_WIDTH, _FIGURE_WIDTH = 62, 14
_TWO_DIGITS = 10
"""From here on the digits before the point say enough."""


class Pair(Struct, frozen=True):
    """podtide and its peer of one kind."""

    kind: Kind
    ours: Contender
    theirs: Contender


def pairs(contenders: Iterable[Contender]) -> list[Pair]:
    """Each kind with its two contenders."""
    found = []
    for kind in Kind:
        ours, theirs = sorted(
            (each for each in contenders if each.kind is kind), key=lambda each: not each.is_podtide
        )
        found.append(Pair(kind, ours, theirs))
    return found


def rows(ours: Sequence[Figure], theirs: Sequence[Figure]) -> Iterator[tuple[str, str, str, str]]:
    """Label, our figure, theirs, and by which factor ours is better. Who did not take part has no figures."""
    by_label = {figure.label: figure for figure in theirs}
    mine = {figure.label: figure for figure in ours}
    for label in mine | by_label:
        one, other = mine.get(label), by_label.get(label)
        ratio = times_better(one, other) if one and other else None
        yield (
            label,
            one.text if one else _NOTHING,
            other.text if other else _NOTHING,
            _factor(ratio),
        )


def markdown(pair: Pair, figures: Mapping[str, Sequence[Figure]]) -> Iterator[str]:
    """The table of a pair, and why one of them is not in it, if so."""
    yield f"| {pair.kind.value} | {pair.ours.name} | {pair.theirs.name} | podtide better by |"
    yield "|---|---|---|---|"
    for row in rows(figures.get(pair.ours.name, ()), figures.get(pair.theirs.name, ())):
        yield f"| {' | '.join(row)} |"
    for contender in (pair.ours, pair.theirs):
        if contender.cannot:
            yield f"| {contender.name} | not measured: {contender.cannot} | | |"


def lines(pair: Pair, figures: Mapping[str, Sequence[Figure]]) -> Iterator[str]:
    """The same for a terminal."""
    yield f"{pair.ours.name}  |  {pair.theirs.name}"
    for label, *cells in rows(figures.get(pair.ours.name, ()), figures.get(pair.theirs.name, ())):
        yield f"  {label:<{_LABEL_WIDTH}}" + "".join(f"{cell:>{_FIGURE_WIDTH}}" for cell in cells)
    for contender in (pair.ours, pair.theirs):
        if contender.cannot:
            yield f"  {contender.name}: not measured: {contender.cannot}"


def _factor(ratio: float | None) -> str:
    if ratio is None:
        return _NOTHING
    return f"{ratio:,.0f} ×" if ratio >= _TWO_DIGITS else f"{ratio:.2g} ×"
