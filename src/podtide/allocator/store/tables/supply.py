"""The free addresses of a subnet, found by index look-ups, never by a scan.

A container that needs sixteen or more gets whole chunks, and what remains comes from chunks that are partly used,
lowest first: used chunks fill up before new ones are begun, and a grant stays in few rows. Rows are read a page at a
time when needed, kept here for the rest of the transaction, and written once at its end.
"""

from collections import deque
from collections.abc import Iterable, Mapping

from podtide.allocator.store.script import Query, Rows, Script, TableChange
from podtide.allocator.store.tables.subnet_row import SubnetRow
from podtide.core.subnet.chunks import CHUNK_SIZE, WHOLE, lowest

_SMALLEST_PAGE, _LARGEST_PAGE = 16, 256
_PARTLY_FREE = f"""SELECT chunk, free FROM chunks /*index chunks_partly_free*/
    WHERE subnet = $1 AND chunk > $2 AND free > 0 AND free < {WHOLE} ORDER BY chunk LIMIT $3"""  # noqa: S608 - numbers
_WHOLLY_FREE = f"""SELECT chunk, free FROM chunks /*index chunks_wholly_free*/
    WHERE subnet = $1 AND chunk > $2 AND free = {WHOLE} ORDER BY chunk LIMIT $3"""  # noqa: S608 - numbers
_BY_NUMBER = "SELECT chunk, free FROM chunks WHERE subnet = $1 AND chunk IN $2"
_SAVE = """INSERT INTO chunks (subnet, chunk, free) VALUES ($1, $2, $3)
    ON CONFLICT (subnet, chunk) DO UPDATE SET free = excluded.free"""


class _Shelf:
    """Chunks of one kind: those in memory, and those in the database after the last one read."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.chunks: deque[int] = deque()
        self.read_up_to = -1
        self.is_read = False


class Supply:
    """The free addresses of a subnet that do not cool down."""

    def __init__(self, subnet: SubnetRow, takers: int) -> None:
        """`takers` may take, most of them a chunk."""
        self._subnet = subnet
        self._page = min(max(takers, _SMALLEST_PAGE), _LARGEST_PAGE)
        self._free: dict[int, int] = {}
        """What is free of every chunk that was looked at."""
        self._changed: set[int] = set()
        self._partly = _Shelf(_PARTLY_FREE)
        self._wholly = _Shelf(_WHOLLY_FREE)

    def take(self, count: int) -> Script[dict[int, int]]:
        """Take `count` addresses, or as many as there are, as masks by chunk."""
        taken: dict[int, int] = {}
        while count > 0:
            chunk = yield from self._next(count)
            if chunk is None:
                break
            mask = lowest(self._free[chunk], count)
            self._set(chunk, self._free[chunk] & ~mask)
            taken[chunk] = taken.get(chunk, 0) | mask
            count -= mask.bit_count()
        return taken

    def take_these(self, masks: Mapping[int, int]) -> Script[dict[int, int]]:
        """Take exactly these addresses, of chunks that have a row; or none, and return those that are not free."""
        yield from self._read(masks)
        if used := {chunk: rest for chunk, mask in masks.items() if (rest := mask & ~self._free[chunk])}:
            return used
        for chunk, mask in masks.items():
            self._set(chunk, self._free[chunk] & ~mask)
        return {}

    def give_back(self, masks: Mapping[int, int]) -> Script[None]:
        """Add these addresses to the free ones."""
        yield from self._read(masks)
        for chunk, mask in masks.items():
            self._set(chunk, self._free[chunk] | mask)

    def _read(self, chunks: Iterable[int]) -> Script[None]:
        unread = [chunk for chunk in chunks if chunk not in self._free]
        if unread:
            self._keep((yield Query(_BY_NUMBER, (self._subnet.id, unread))))

    def take_if_free(self, masks: dict[int, int]) -> Script[dict[int, int]]:
        """Take those of these addresses that are free or were never used; returns them by chunk."""
        taken = yield from self.free_of(masks)
        for chunk, mask in taken.items():
            self._set(chunk, self._free[chunk] & ~mask)
        return taken

    def free_of(self, masks: Mapping[int, int]) -> Script[dict[int, int]]:
        """Those of these addresses that are free or were never used, by chunk; they stay so."""
        for chunk in masks:
            for new in self._subnet.begin_up_to(chunk):
                self._set(new, self._subnet.layout.mask(new))
        yield from self._read(masks)
        return {chunk: free for chunk, mask in masks.items() if (free := mask & self._free[chunk])}

    @property
    def changes(self) -> TableChange:
        """The chunks that changed."""
        return TableChange(
            _SAVE, [(self._subnet.id, chunk, self._free[chunk]) for chunk in sorted(self._changed)]
        )

    def _next(self, count: int) -> Script[int | None]:
        """The chunk to take from next."""
        shelves = [self._partly, self._wholly]
        for shelf in reversed(shelves) if count >= CHUNK_SIZE else shelves:
            chunk = yield from self._on(shelf)
            if chunk is not None:
                return chunk
            if shelf is self._wholly and (chunk := self._begin_new()) is not None:
                return chunk
        return None

    def _on(self, shelf: _Shelf) -> Script[int | None]:
        while True:
            while shelf.chunks:
                if self._shelf(self._free[shelf.chunks[0]]) is shelf:
                    return shelf.chunks[0]
                shelf.chunks.popleft()  # it was taken from, or given back to, since it was put here
            if shelf.is_read:
                return None
            page = yield Query(shelf.sql, (self._subnet.id, shelf.read_up_to, self._page))
            shelf.is_read = len(page) < self._page
            if page:
                shelf.read_up_to = page[-1][0]
            self._keep(page)
            # Of a CIDR that drains nothing is taken: its chunks are passed over at once.
            if page and (block := self._subnet.layout.block(page[-1][0])).is_draining:
                shelf.read_up_to = block.last_chunk

    def _begin_new(self) -> int | None:
        """The next chunk that was never used."""
        chunk = self._subnet.begin_chunk()
        if chunk is not None:
            self._set(chunk, self._subnet.layout.mask(chunk))
        return chunk

    def _keep(self, page: Rows) -> None:
        for chunk, free in page:
            if chunk not in self._free:  # what was looked at before may have changed since
                self._free[chunk] = free
                self._put_on_shelf(chunk)

    def _set(self, chunk: int, free: int) -> None:
        before = self._shelf(self._free.get(chunk, 0))
        self._free[chunk] = free
        self._changed.add(chunk)
        if self._shelf(free) is not before:
            self._put_on_shelf(chunk)

    def _put_on_shelf(self, chunk: int) -> None:
        shelf = self._shelf(self._free[chunk])
        if shelf is not None and not self._subnet.layout.block(chunk).is_draining:
            shelf.chunks.append(chunk)

    def _shelf(self, free: int) -> _Shelf | None:
        if not free:
            return None
        return self._wholly if free == WHOLE else self._partly
