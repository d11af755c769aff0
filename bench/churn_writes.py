"""What an ordinary churn of pods costs in writes to the API server: podtide as it is, and as it was before.

"Before", the batch went one rung at a time and agents did not state their demand: the ladder of docs/comparison.md.
"""

from collections.abc import Iterator

from comparison.contestants import LADDER, PODTIDE
from pod_churn import AT_60_PERCENT, AT_85_PERCENT, AT_EASE, count_writes
from podtide.runtime import virtual_time

PART = "churn"
HOURS = 4


def measure() -> Iterator[tuple[str, str]]:
    """For each case the writes per node and hour, before and now, and their ratio."""
    for case in (AT_EASE, AT_60_PERCENT, AT_85_PERCENT):
        before, now = (virtual_time.run(count_writes(each, case, HOURS)) for each in (LADDER, PODTIDE))
        for words, writes in (("before", before), ("now", now)):
            yield (
                f"{case.words}, {words}: requests (of these restated), grants, subnets",
                f"{writes.requests:.2f} ({writes.restatements:.2f}), {writes.grants:.2f}, {writes.subnets:.2f}",
            )
            yield "… batches in force", ", ".join(map(str, writes.batches))
        yield f"{case.words}: all writes, now : before", f"{now.total / before.total:.2f}"
