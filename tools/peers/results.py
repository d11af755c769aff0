"""What a contender's turns at one load come to."""

from collections import Counter
from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from peers.background import Background
from peers.request_counts import Asked
from peers.turns import Bill, Turn


class CallResults(Struct, frozen=True, kw_only=True):
    """All calls of one verb."""

    calls: int
    failed: int
    rate: float
    """Answered per second, the median of the turns."""
    seconds: Sequence[float]
    """Of each call, sorted; one without an answer counts with the kubelet's deadline."""
    plugin_cpu_seconds: float
    """Per call, as are the other costs."""
    agents_cpu_seconds: float
    api_server_cpu_seconds: float
    requests: dict[Asked, float]

    def percentile(self, part: float) -> float:
        """What this part of all calls does not exceed, in seconds."""
        return self.seconds[min(len(self.seconds) - 1, int(len(self.seconds) * part))]


class Result(Struct, frozen=True):
    """A contender at a load."""

    adds: CallResults
    dels: CallResults
    faults: Sequence[str]


def result_of(turns: Sequence[Turn], background: Background) -> Result:
    """All turns together."""
    return Result(
        _calls([turn.adds for turn in turns], background),
        _calls([turn.dels for turn in turns], background),
        [fault for turn in turns for fault in turn.faults],
    )


def _calls(bills: Sequence[Bill], background: Background) -> CallResults:
    answers = [answer for bill in bills for answer in bill.answers]
    count = len(answers)
    requests: Counter[Asked] = sum((bill.requests for bill in bills), Counter())
    seconds = sum(bill.seconds for bill in bills)
    agents_cpu = sum(bill.agents_cpu_seconds for bill in bills)
    server_cpu = sum(bill.api_server_cpu_seconds for bill in bills)
    return CallResults(
        calls=count,
        failed=sum(not answer.is_answered for answer in answers),
        rate=median(bill.rate for bill in bills),
        seconds=sorted(answer.seconds for answer in answers),
        plugin_cpu_seconds=sum(answer.cpu_seconds for answer in answers) / count,
        agents_cpu_seconds=background.agents_cpu_per_call(agents_cpu, bills[0].agents, seconds, count),
        api_server_cpu_seconds=background.api_server_cpu_per_call(server_cpu, seconds, count),
        requests=background.requests_per_call(requests, seconds, count),
    )
