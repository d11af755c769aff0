"""Whether a database that is opened to be served is the one it was: if not, it recovers (see `core.subnet.store_continuity`)."""

from podtide.allocator.store.drivers.mark import PROGRESS
from podtide.allocator.store.script import Query, Script
from podtide.allocator.store.tables.transaction_context import begin_recovery
from podtide.core.subnet.store_continuity import StoreMark, doubt_about

_NAME = "UPDATE store SET uid = $1 WHERE uid = ''"
_CATCH_UP = "UPDATE store SET removed_sequences = removed_sequences + $1"


def examine(mark: StoreMark | None, new_uid: str, now: float) -> Script[str]:
    """Compare the database with the mark beside it; returns why it recovers from now on, or "".

    Its progress continues above the mark's, so that the two agree again; that it recovers is stored in the database.
    """
    ((store, progress),) = yield Query(PROGRESS)
    doubt = doubt_about(store, progress, mark)
    if not store:
        yield Query(_NAME, (new_uid,))
    if doubt:
        if mark is not None and mark.progress >= progress:
            yield Query(_CATCH_UP, (mark.progress - progress + 1,))
        yield from begin_recovery(doubt, now)
    return doubt
