"""Environment variables that begin with `PODTIDE_`: the settings, a few others of ours, and otherwise mistakes.

One that nobody knows is refused: whoever wrote `PODTIDE_BATCHH=8` believes that the batch is 8. Kubernetes puts variables
for every Service of a namespace into each container, and those of a Service named podtide begin like ours: these are let
be.
"""

import re
from collections.abc import Iterable, Mapping

from podtide.core.errors import InvalidInput
from podtide.core.similar_keys import near_miss

_PREFIX = "PODTIDE_"
_NO_SETTINGS = ("PODTIDE_DATABASE", "PODTIDE_PLUGIN", "PODTIDE_SOCKET")
"""The allocator's database, the plugin to install, and where the plugin finds the agent."""
_OF_A_SERVICE = re.compile(
    r"PODTIDE(_.+)?_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)


class InvalidSetting(InvalidInput):
    """A setting that does not exist, or with a value that it cannot have."""


def check_variables(environment: Mapping[str, str], settings: Iterable[str]) -> None:
    """Refuse a variable that begins like ours and is none of `settings`, nor another of ours, nor a Service's."""
    known = [*settings, *_NO_SETTINGS]
    for name in sorted(environment):
        if not name.startswith(_PREFIX) or name in known or _OF_A_SERVICE.fullmatch(name):
            continue
        meant = near_miss(name.removeprefix(_PREFIX), (each.removeprefix(_PREFIX) for each in known))
        advice = f"did you mean {_PREFIX}{meant}? Correct or unset it" if meant else "unset it"
        raise InvalidSetting(f"the environment variable {name} is no setting of podtide: {advice}")
