"""How `--pods-per-node` is written: one number, a range, quantiles, or a file with a number for each node.

    20                      every node has 20 pods
    10..30                  as many nodes with 10 pods as with 11, and so on up to 30
    p50=12,p90=30,max=60    half of the nodes have at most 12, nine tenths at most 30, the others at most 60
    @counts.txt             a number in each line, for one node each; `@-` is stdin

A class of quantiles is planned with its bound, because a plan must suffice.
"""

import re
import sys
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from podtide.core.errors import InvalidInput
from podtide.core.exact import shortened
from podtide.core.plan.node_loads import PodMix

_MOST_PODS = 65_536
_RANGE = re.compile(r"([0-9]{1,5})(?:\.\.([0-9]{1,5}))?")
_QUANTILE = re.compile(r"(?:p([0-9]{1,2}(?:\.[0-9]{1,6})?)|(max))=([0-9]{1,5})")


class PodCounts(Struct, frozen=True):
    """The mix of nodes by their pods, and how many nodes it is of, where that is known."""

    mix: PodMix
    nodes: int | None = None


class PodCountsType(click.ParamType[PodCounts]):
    """`20`, `10..30`, `p50=12,p90=30,max=60` or `@counts.txt`."""

    name = "pods"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> PodCounts:
        """The mix; an error shows how it is written."""
        del param, ctx
        if isinstance(value, PodCounts):
            return value
        written = value.strip()
        if written.startswith("@"):
            return _from_file(written[1:])
        if found := _RANGE.fullmatch(written):
            return PodCounts(_range(int(found[1]), int(found[2] or found[1]), written))
        return PodCounts(_quantiles(written))


def _range(least: int, most: int, written: str) -> PodMix:
    if least > most or most > _MOST_PODS:
        raise InvalidInput(
            f"--pods-per-node {written!r} is refused: a range goes from the smaller to the larger number, at most {_MOST_PODS}"
        )
    return dict.fromkeys(range(least, most + 1), 1)


def _quantiles(written: str) -> PodMix:
    found = [_QUANTILE.fullmatch(part.strip()) for part in written.split(",")]
    points = [(Fraction(100) if each[2] else Fraction(each[1]), int(each[3])) for each in found if each]
    rises = all(one[0] < other[0] and one[1] <= other[1] for one, other in pairwise(points))
    if None in found or not rises or points[-1][0] != 100 or points[-1][1] > _MOST_PODS:  # noqa: PLR2004 - percent
        raise InvalidInput(
            f"--pods-per-node {shortened(written)!r} is refused: give a number such as 20, a range such as 10..30, rising "
            "quantiles that end with max such as p50=12,p90=30,max=60, or a file of numbers such as @counts.txt"
        )
    mix: dict[int, Fraction] = {}
    for (before, _), (upto, pods) in pairwise([(Fraction(0), 0), *points]):
        mix[pods] = mix.get(pods, Fraction(0)) + upto - before
    return mix


def _from_file(path: str) -> PodCounts:
    name = "stdin" if path == "-" else path
    try:
        lines = (sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InvalidInput(f"--pods-per-node cannot read {name}: {reason}") from None
    mix: dict[int, int] = {}
    for number, line in enumerate(lines, start=1):
        written = line.strip()
        if not written:
            continue
        if not re.fullmatch(r"[0-9]{1,5}", written) or int(written) > _MOST_PODS:
            raise InvalidInput(
                f"{name}:{number}: {shortened(written)!r} is not a number of pods: give one from 0 to {_MOST_PODS} in each line"
            )
        mix[int(written)] = mix.get(int(written), 0) + 1
    if not mix:
        raise InvalidInput(f"{name} is empty: give a number of pods in each line, one for each node")
    return PodCounts(mix, sum(mix.values()))
