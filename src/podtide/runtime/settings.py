"""What a person may tune, in one table: the name, what is allowed, the default and what it is for.

A setting called `shrink_delay` is the flag `--shrink-delay 30s` and the environment variable
`PODTIDE_SHRINK_DELAY=30s`; a flag goes before the environment, and both before the default. In code it is
`settings.shrink_delay_seconds`, a number with its unit in the name. Fractions are exact, because they decide how
many addresses a node gets (see `podtide.core.exact`).

Numbers that only make sense together are checked together, so a `Settings` that exists is one that can be run by.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

from msgspec import Struct, structs

from podtide.core.errors import InvalidInput
from podtide.core.exact import exact, shortened, text
from podtide.core.pool.pacing import Pace
from podtide.core.similar_keys import near_miss
from podtide.core.subnet.batch import BatchDelays
from podtide.core.subnet.exhaustion import Thresholds
from podtide.core.subnet.scaler import DEFAULT_BATCH, DEFAULT_BUFFER, DEFAULT_MAX_IPS
from podtide.runtime.durations import LONGEST_SECONDS, format_duration, parse_duration

_PREFIX = "PODTIDE_"
_NO_SETTINGS = ("PODTIDE_DATABASE", "PODTIDE_PLUGIN", "PODTIDE_SOCKET")
"""The allocator's database, the plugin to install, and where the plugin finds the agent."""
_OF_A_SERVICE = re.compile(
    r"PODTIDE(_.+)?_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)


class _Kind(NamedTuple):
    """How people write values of one type."""

    noun: str
    parse: Callable[[str], Any]
    show: Callable[[Any], str]
    most: float
    """The maximum: more is taken for a mistake."""


_MOST_ADDRESSES = 65_536
"""The most that an allocator takes for a node."""

_KINDS = {
    int: _Kind("a whole number", int, str, _MOST_ADDRESSES),
    Fraction: _Kind("a decimal or fraction such as 0.5 or 1/2", exact, text, _MOST_ADDRESSES),
    float: _Kind("a duration such as 30s or 100ms", parse_duration, format_duration, LONGEST_SECONDS),
}


class _About(NamedTuple):
    """A setting's purpose and bounds."""

    purpose: str
    at_least: int | None = None
    more_than: int | None = None
    less_than: int | None = None


class Settings(Struct, frozen=True, kw_only=True):
    """Every setting with its default."""

    batch: Annotated[int, _About("addresses a node's pool grows and shrinks by", at_least=1)] = DEFAULT_BATCH
    buffer: Annotated[Fraction, _About("part of a batch a node keeps free", at_least=0)] = DEFAULT_BUFFER
    max_ips: Annotated[int, _About("most addresses a node may ask for", at_least=1)] = DEFAULT_MAX_IPS
    lower_threshold: Annotated[
        Fraction,
        _About(
            "part of a subnet below which a larger batch must stay, and below which it is no longer exhausted",
            more_than=0,
            less_than=1,
        ),
    ] = Thresholds().lower
    upper_threshold: Annotated[
        Fraction,
        _About(
            "part of a subnet above which it is exhausted and its batch is reduced", more_than=0, less_than=1
        ),
    ] = Thresholds().upper
    answer_wait_seconds: Annotated[
        float, _About("how long nodes may take to answer a new batch before the next is decided", at_least=0)
    ] = BatchDelays().answer_seconds
    starved_dwell_seconds: Annotated[float, _About("least time that a subnet stays starved", at_least=0)] = (
        BatchDelays().starved_dwell_seconds
    )
    gather_seconds: Annotated[
        float, _About("how long a change of demand waits for more of them", at_least=0)
    ] = Pace().gather_seconds
    gather_at_most_seconds: Annotated[
        float, _About("how long changes of demand are gathered when they keep coming", at_least=0)
    ] = Pace().gather_at_most_seconds
    shrink_delay_seconds: Annotated[
        float, _About("how long demand must be lower before addresses are given back", at_least=0)
    ] = Pace().shrink_delay_seconds
    cooldown_seconds: Annotated[
        float, _About("how long a released address rests before another pod gets it", at_least=0)
    ] = 30.0
    poll_seconds: Annotated[float, _About("how often a subnet's utilization is read", more_than=0)] = 5.0
    add_wait_seconds: Annotated[
        float, _About("how long an ADD waits for an address that is on its way", at_least=0)
    ] = 10.0
    contact_timeout_seconds: Annotated[
        float, _About("how long a node without contact to the API still hands out addresses", more_than=0)
    ] = 300.0
    quarantine_seconds: Annotated[
        float, _About("how long a removed node's addresses are kept from others at least", more_than=0)
    ] = 360.0
    leak_grace_seconds: Annotated[
        float, _About("how long an address may be held for no living pod before it is collected", at_least=0)
    ] = 300.0
    repair_interval_seconds: Annotated[
        float, _About("how often all of the secondary networks are looked through for leaks", more_than=0)
    ] = 300.0
    runs_out_warning_seconds: Annotated[
        float, _About("how long before a subnet runs out people are warned by an Event", at_least=0)
    ] = 30 * 24 * 3600.0
    leader_lease_seconds: Annotated[
        float, _About("how long a silent leader is waited for before another takes over", more_than=0)
    ] = 15.0
    leader_renew_deadline_seconds: Annotated[
        float, _About("how long a leader that cannot renew its Lease still leads", more_than=0)
    ] = 10.0
    leader_retry_seconds: Annotated[
        float, _About("how often the leader renews its Lease and the others look at it", more_than=0)
    ] = 2.0

    def __post_init__(self) -> None:
        for setting in SETTINGS:
            setting.check(getattr(self, setting.field))
        _refuse_clash(structs.asdict(self), {})


_LESS = "less than"
_THE_OTHER_WAY = {_LESS: "more than", "at most": "at least"}
_ORDERED = (
    ("lower_threshold", _LESS, "upper_threshold"),
    ("gather_seconds", "at most", "gather_at_most_seconds"),
    # A node that lost contact hands out addresses until its timeout: they must rest for longer than that.
    ("contact_timeout_seconds", _LESS, "quarantine_seconds"),
    ("leader_retry_seconds", _LESS, "leader_renew_deadline_seconds"),
    # A leader must have stopped before another may start.
    ("leader_renew_deadline_seconds", _LESS, "leader_lease_seconds"),
)


class Setting(Struct, frozen=True):
    """One setting, for programs that read, show or document settings."""

    field: str
    default: int | float | Fraction
    kind: _Kind
    about: _About

    @property
    def name(self) -> str:
        """What people call it: the field without its unit, because the value they give carries one."""
        return self.field.removesuffix("_seconds")

    @property
    def flag(self) -> str:
        """The command-line option."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def variable(self) -> str:
        """The environment variable."""
        return f"PODTIDE_{self.name.upper()}"

    @property
    def allowed(self) -> str:
        """What may be given, for errors and documentation."""
        bounds = [
            f"{words} {self.show(bound)}"
            for words, bound in (
                ("at least", self.about.at_least),
                ("more than", self.about.more_than),
                ("less than", self.about.less_than),
            )
            if bound is not None
        ]
        return f"{self.kind.noun}, {' and '.join(bounds)}"

    def show(self, value: float | Fraction) -> str:
        """A value as a person would write it."""
        return self.kind.show(value)

    def parse(self, given: str, source: str) -> int | float | Fraction:
        """The value that a person wrote at `source`, a flag or a variable."""
        try:
            value: int | float | Fraction = self.kind.parse(given)
        except ValueError:
            raise InvalidSetting(self._refusal(f"{source}={shortened(given)}")) from None
        self.check(value, f"{source}={shortened(given)}")
        return value

    def check(self, value: float | Fraction, shown: str = "") -> None:
        """Refuse a value out of bounds; `shown` is how the error quotes it."""
        _purpose, at_least, more_than, less_than = self.about
        if (
            (at_least is not None and value < at_least)
            or (more_than is not None and value <= more_than)
            or (less_than is not None and value >= less_than)
            or value > self.kind.most
        ):
            raise InvalidSetting(self._refusal(shown or f"{self.name} {self.show(value)}"))

    def _refusal(self, shown: str) -> str:
        """The error that says what is allowed. The maximum of the type is named where no closer bound is."""
        most = "" if self.about.less_than is not None else f" and at most {self.show(self.kind.most)}"
        return f"{shown} is refused: give {self.allowed}{most}"


def _refuse_clash(values: Mapping[str, Any], sources: Mapping[str, str]) -> None:
    """Refuse values that contradict each other, in the name of the one that was given.

    `sources` says by which flag or variable each was given. A default is never named as the mistake.
    """
    for smaller, relation, larger in _ORDERED:
        low, high = values[smaller], values[larger]
        if low < high or (low == high and relation != _LESS):
            continue
        refused, bound, wanted = smaller, larger, relation
        if larger in sources and smaller not in sources:
            refused, bound, wanted = larger, smaller, _THE_OTHER_WAY[relation]
        shown = _BY_FIELD[refused].show(values[refused])
        named = f"{sources[refused]}={shown}" if refused in sources else f"{_BY_FIELD[refused].name} {shown}"
        raise InvalidSetting(
            f"{named} is refused: give {wanted} {sources.get(bound, _BY_FIELD[bound].name)}, "
            f"which is {_BY_FIELD[bound].show(values[bound])}"
        )


def _read_table() -> tuple[Setting, ...]:
    hints = get_type_hints(Settings, include_extras=True)
    rows = []
    for field in structs.fields(Settings):
        kind, about = get_args(hints[field.name])
        rows.append(Setting(field.name, field.default, _KINDS[kind], about))
    return tuple(rows)


SETTINGS = _read_table()
_BY_FIELD = {setting.field: setting for setting in SETTINGS}


def load_settings(environment: Mapping[str, str], flags: Mapping[str, str]) -> Settings:
    """The settings in force: `flags` (by name, `{"shrink_delay": "30s"}`) override `environment`.

    An unknown flag or variable is refused (see `check_variables`).
    """
    check_variables(environment, [setting.variable for setting in SETTINGS])
    names = [setting.name for setting in SETTINGS]
    for name in flags:
        if name not in names:
            raise InvalidSetting(f"setting {name!r} does not exist: give one of {', '.join(names)}")
    stated: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for setting in SETTINGS:
        if setting.name in flags:
            given, sources[setting.field] = flags[setting.name], setting.flag
        elif setting.variable in environment:
            given, sources[setting.field] = environment[setting.variable], setting.variable
        else:
            continue
        stated[setting.field] = setting.parse(given, sources[setting.field])
    _refuse_clash({setting.field: setting.default for setting in SETTINGS} | stated, sources)
    return Settings(**stated)


class InvalidSetting(InvalidInput):
    """A setting that does not exist, or an invalid value of one."""


def check_variables(environment: Mapping[str, str], settings: Iterable[str]) -> None:
    """Refuse a variable that begins with `PODTIDE_` and is none of `settings`, nor another of ours, nor a Service's.

    The author of `PODTIDE_BATCHH=8` believes that the batch is 8. Kubernetes puts variables for every Service of a
    namespace into each container, and those of a Service named podtide begin like ours: these are accepted.
    """
    known = [*settings, *_NO_SETTINGS]
    for name in sorted(environment):
        if not name.startswith(_PREFIX) or name in known or _OF_A_SERVICE.fullmatch(name):
            continue
        meant = near_miss(name.removeprefix(_PREFIX), (each.removeprefix(_PREFIX) for each in known))
        advice = f"did you mean {_PREFIX}{meant}? Correct or unset it" if meant else "unset it"
        raise InvalidSetting(f"the environment variable {name} is not a setting of podtide: {advice}")
