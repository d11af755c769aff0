"""Claims that were renewed by a clock that was ahead.

A claim holds others up as long as it is renewed. One from the future would do so until that day comes, even if its
node is never heard of again; so it counts as renewed now, when somebody comes upon it, and lapses in its time.
"""

from podtide.allocator.store.script import Query, Script
from podtide.allocator.store.subnet_row import find_subnet

_RENEW_NOW = """UPDATE containers SET renewed = $1, owed_since = CASE WHEN owed_since > $1 THEN $1 ELSE owed_since END
    WHERE subnet = $2 AND owed > 0 AND renewed > $1"""


def renew_now(subnet: int, now: float) -> Script[None]:
    """Let every claim in the subnet that was renewed in the future be renewed now."""
    yield Query(_RENEW_NOW, (now, subnet))


def renew_now_in(network: str, name: str, now: float) -> Script[None]:
    """The same, for one who has not opened the subnet's transaction."""
    subnet, _due = yield from find_subnet(network, name, now, lock=True)
    yield from renew_now(subnet.id, now)
