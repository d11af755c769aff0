"""When to look: after an interval, or by a cron expression, as Whereabouts' reconciler has it.

Times of expressions are UTC: replicas of a controller may run on machines that disagree about the local time.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

from podtide.core.errors import InvalidInput

_FIELDS = 5


def check_expression(expression: str, source: str = "") -> None:
    """Refuse what is no cron expression of five fields. One of six counts seconds, and a look is no matter of seconds.

    `source` is the option that it is of, if it is of one.
    """
    from cronsim import CronSim, CronSimError  # noqa: PLC0415 - few use expressions

    try:
        next(CronSim(expression, datetime.fromtimestamp(0, UTC)))
        is_one = len(expression.split()) == _FIELDS
    except (CronSimError, StopIteration):
        is_one = False
    if not is_one:
        said = f"{source} {expression!r}" if source else repr(expression)
        raise InvalidInput(
            f"{said} is no cron expression that ever comes: write minute, hour, day of month, month and day of "
            "week, such as '30 4 * * *'"
        )


def seconds_until(expressions: Iterable[str], wall_seconds: float) -> float:
    """How long it is until the first of these (at least one) comes next."""
    from cronsim import CronSim  # noqa: PLC0415 - few use expressions

    now = datetime.fromtimestamp(wall_seconds, UTC)
    return min((next(CronSim(expression, now)) - now).total_seconds() for expression in expressions)
