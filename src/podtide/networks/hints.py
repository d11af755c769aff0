"""Which networks a definition may be about that cannot be read.

Until it is corrected, the network of such a definition must not be removed as if it had no definition. But not every
network has to stay for that: the text still contains names and addresses. A network that it neither names nor has an
address of is very likely not the one it describes; and what is removed then is only what no pod uses.
"""

import re

from msgspec import Struct

from podtide.core.errors import InvalidRange
from podtide.core.ranges import IPAddress, IPNetwork, parse_address

_WORD = re.compile(r"[a-z0-9][-a-z0-9.]*")
_ADDRESS = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:.]*")


class Hints(Struct, frozen=True):
    """The words and addresses in a text."""

    words: frozenset[str]
    addresses: frozenset[IPAddress]

    def are_of(self, names: frozenset[str], range_: IPNetwork | None) -> bool:
        """Whether they contain any of these names, or an address of this range."""
        return not names.isdisjoint(self.words) or (
            range_ is not None and any(address in range_ for address in self.addresses)
        )


def hints_in(text: str) -> Hints:
    """The words and addresses in the text."""
    return Hints(frozenset(_WORD.findall(text)), frozenset(_addresses(text)))


def _addresses(text: str) -> set[IPAddress]:
    found = set()
    for match in _ADDRESS.findall(text):
        try:
            found.add(parse_address(match))
        except InvalidRange:
            continue
    return found
