"""What a call may name and how much it may ask for: refused in words, before a database sees it.

The service's schema states the same numbers (`wire`), so that a client can know them beforehand.
"""

import re

from podtide.allocator.port import SubnetSpec, Wish
from podtide.core.errors import InvalidInput

LONGEST_NAME = 253
MOST_WANTED = 65_536
"""Addresses a node may ask for, names it may release at once, pods that may wait."""
LONGEST_PAGE = 1_000
MOST_KEPT_BACK = 10_000
"""Addresses a subnet may keep back one by one; `keep_back_first` is for more."""
_LARGEST_GENERATION = 2**63 - 1
NAME = r"[A-Za-z0-9]([A-Za-z0-9._\-]*[A-Za-z0-9])?"
NAME_RULE = "is no name: use letters, digits, '.', '_' and '-', with a letter or digit at both ends"


def check_names(**names: str) -> None:
    """Refuse what is no name; each is given by what it is the name of."""
    for what, name in names.items():
        if len(name) > LONGEST_NAME or not re.fullmatch(NAME, name):
            shown = name if len(name) <= LONGEST_NAME else f"{name[:32]}… of {len(name)} characters"
            raise InvalidInput(f"{what} {shown!r} {NAME_RULE}, and at most {LONGEST_NAME} of them")


def check_spec(spec: SubnetSpec) -> None:
    """Refuse a subnet with more to keep back than is kept one by one; its addresses are the layout's to judge."""
    check_names(network=spec.network, subnet=spec.name)
    _check_number("keep_back_first", spec.keep_back_first, MOST_WANTED)
    _check_length("keep_back", spec.keep_back, MOST_KEPT_BACK, "use keep_back_first for more")


def check_wish(wish: Wish) -> None:
    """Refuse a wish that no node can mean."""
    check_names(
        container=wish.id,
        network=wish.network,
        subnet=wish.subnet,
        cluster=wish.cluster,
        node=wish.node,
        request=wish.request_uid,
    )
    _check_number("generation", wish.generation, _LARGEST_GENERATION)
    _check_number("count", wish.count, MOST_WANTED)
    _check_number("waiting_pods", wish.waiting_pods, MOST_WANTED)
    _check_length("release", wish.release, MOST_WANTED, "release them in several wishes")


def check_page(limit: int) -> None:
    """Refuse a page of no or too many items."""
    if not 1 <= limit <= LONGEST_PAGE:
        raise InvalidInput(f"a page of {limit} is refused: ask for 1 to {LONGEST_PAGE} at a time")


def _check_number(what: str, number: int, most: int) -> None:
    if not 0 <= number <= most:
        raise InvalidInput(f"{what} {number} is refused: give 0 to {most}")


def _check_length(what: str, names: tuple[str, ...], most: int, advice: str) -> None:
    if len(names) > most:
        raise InvalidInput(f"{what} has {len(names)} entries, and {most} are taken: {advice}")
