"""When the next pass of leak repair is due by cron expressions, as in Whereabouts' reconciler.

Times of expressions are UTC: replicas of a controller may run on machines that disagree about the local time.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

from podtide.core.errors import InvalidInput

_FIELDS = 5


def check_expression(expression: str, source: str = "") -> None:
    """Refuse an invalid cron expression. One of six fields, with seconds, is refused too: a pass takes longer than that.

    `source` is the option that states it, for the message; "" for none.
    """
    if len(expression.split()) != _FIELDS or _next_time(expression, datetime.fromtimestamp(0, UTC)) is None:
        said = f"{source} {expression!r}" if source else repr(expression)
        raise InvalidInput(
            f"{said} is not a cron expression that is ever due: write minute, hour, day of month, month and day of "
            "week, such as '30 4 * * *'"
        )


def seconds_until(expressions: Iterable[str], wall_seconds: float) -> float:
    """In how many seconds the first of these expressions (at least one) is due."""
    now = datetime.fromtimestamp(wall_seconds, UTC)
    times = filter(None, (_next_time(expression, now) for expression in expressions))
    return (min(times) - now).total_seconds()


def _next_time(expression: str, now: datetime) -> datetime | None:
    """When it is due; None if it is invalid, or never due."""
    from cronsim import CronSim, CronSimError  # noqa: PLC0415 - few use expressions, and its import takes long

    try:
        return next(CronSim(expression, now), None)
    except CronSimError:
        return None
