"""How many requests the API server answered, by its own metric `apiserver_request_total`.

What is long-running (watches) is not a request that somebody waits for, and what has no resource (health, metrics) is
ours.
"""

import re
from collections import Counter

from msgspec import Struct

_LINE = re.compile(r"^apiserver_request_total\{(?P<labels>.*)\} (?P<count>\S+)$", flags=re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_LONG_RUNNING = {"WATCH", "WATCHLIST", "CONNECT"}


class Asked(Struct, frozen=True, order=True):
    """A kind of request."""

    verb: str
    resource: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"


def counted(metrics: str) -> Counter[Asked]:
    """How often each was asked, by the text of the API server's /metrics."""
    counts: Counter[Asked] = Counter()
    for line in _LINE.finditer(metrics):
        labels = dict(_LABEL.findall(line["labels"]))
        if labels["resource"] and labels["verb"] not in _LONG_RUNNING:
            counts[Asked(labels["verb"], labels["resource"])] += int(float(line["count"]))
    return counts
