"""Unknown keys that are similar to a known one: the spelling mistakes in a configuration.

An unknown key is ignored, as Go's JSON reader ignores it. A misspelt one must not be: without its `range`, a network of
type podtide gives addresses of the node's pool; without its `range_end`, a network is larger than its author thinks.
"""

from collections.abc import Iterable

_SHORT, _MIDDLING = 3, 5


def near_miss(key: str, known: Iterable[str]) -> str | None:
    """The known key that an unknown one was probably meant to be; None when it is far from all of them.

    Underscores, hyphens and case do not count. Of what is left a short key (`gw`) has to be the same, one of four or five
    letters may have one mistake and a longer one two: a letter too many, missing, another, or two in the wrong order. A
    key that begins with neither letter nor digit, `_range` or `#range`, is how people put a key out of use.
    """
    if not key[:1].isalnum():
        return None
    bare = _bare(key)
    distances = ((_distance(bare, _bare(each), _mistakes(_bare(each))), each) for each in known)
    found = [(distance, each) for distance, each in distances if distance is not None]
    return min(found)[1] if found else None


def _bare(key: str) -> str:
    return key.lower().replace("_", "").replace("-", "")


def _mistakes(known: str) -> int:
    """How many mistakes leave a key recognisable."""
    if len(known) <= _SHORT:
        return 0
    return 1 if len(known) <= _MIDDLING else 2


def _distance(one: str, other: str, most: int) -> int | None:
    """How many mistakes lie between two words; None when these are more than `most`."""
    if abs(len(one) - len(other)) > most:
        return None
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        row, last, earlier = [i], row, before
        for j, right in enumerate(other, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (left != right))
            if i > 1 and j > 1 and left == other[j - 2] and one[i - 2] == right:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        before = last
    return row[-1] if row[-1] <= most else None
