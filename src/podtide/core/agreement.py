"""Which of several statements about one thing counts, when they differ.

Several NetworkAttachmentDefinitions may describe one network. Where they differ, none of them may win by being read
last: what is in force stays, and the definitions that state something else are reported. Where no definition states what
is in force, none of them can be preferred, and nothing counts until they agree.
"""

from collections.abc import Hashable, Sequence

from msgspec import Struct


class Agreement(Struct, frozen=True):
    """The index of the statement that counts, None when none does, and the indexes of those that differ from it."""

    chosen: int | None
    dissenting: tuple[int, ...] = ()


def agree(statements: Sequence[Hashable], in_force: Sequence[bool]) -> Agreement:
    """Choose among one or more statements; `in_force` says of each whether it is in force already."""
    if len(set(statements)) == 1:
        return Agreement(0)
    standing = next((place for place, holds in enumerate(in_force) if holds), None)
    if standing is None:
        return Agreement(None, tuple(range(len(statements))))
    dissenting = (place for place, stated in enumerate(statements) if stated != statements[standing])
    return Agreement(standing, tuple(dissenting))
