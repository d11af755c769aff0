"""How long ago, in the two or three characters that `kubectl get` shows."""

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400

# Up to how many seconds, which unit, and whether the next smaller one is shown beside it: the older, the coarser.
_STEPS: tuple[tuple[int, tuple[tuple[int, str], ...]], ...] = (
    (2 * _MINUTE, ((1, "s"),)),
    (10 * _MINUTE, ((_MINUTE, "m"), (1, "s"))),
    (3 * _HOUR, ((_MINUTE, "m"),)),
    (8 * _HOUR, ((_HOUR, "h"), (_MINUTE, "m"))),
    (2 * _DAY, ((_HOUR, "h"),)),
    (8 * _DAY, ((_DAY, "d"), (_HOUR, "h"))),
    (2 * _YEAR, ((_DAY, "d"),)),
    (8 * _YEAR, ((_YEAR, "y"), (_DAY, "d"))),
)
_LAST = ((_YEAR, "y"),)


def age(seconds: float) -> str:
    """`0s`, `90s`, `5m3s`, `25m`, `3h7m`, `30h`, `2d5h`, `400d`, `3y12d`."""
    left = max(0, int(seconds))
    units = next((units for limit, units in _STEPS if left < limit), _LAST)
    words: list[str] = []
    for size, unit in units:
        count, left = divmod(left, size)
        if count or not words:
            words.append(f"{count}{unit}")
    return "".join(words)
