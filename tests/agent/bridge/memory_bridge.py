"""A bridge in memory, for agents on virtual time: it has to pass the contract of the real one."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from podtide.agent.bridge.port import BridgeError
from podtide.core.pool.address import Family
from podtide.core.pool.bridge_gateways import BridgeAddress


class MemoryBridge:
    """A bridge that a test can delete, change and break."""

    name = "memory0"

    def __init__(self) -> None:
        self.exists = False
        self.refusal = ""
        """Why nothing can be changed; "" while it can."""
        self.forwards = True
        self.log: list[str] = []
        self._present: dict[str, bool] = {}
        self._watchers: list[Callable[[], None]] = []

    @property
    def present(self) -> set[str]:
        return set(self._present)

    # The port

    def ensure(self) -> tuple[BridgeAddress, ...]:
        self._require()
        if not self.exists:
            self.exists = True
            self._changed()
        return tuple(BridgeAddress(address, is_ours=is_ours) for address, is_ours in self._present.items())

    def add(self, address: str) -> None:
        self._require()
        if self.exists and address not in self._present:
            self._present[address] = True
            self.log.append(f"+{address}")
            self._changed()

    def remove(self, address: str) -> None:
        self._require()
        if self._present.pop(address, None) is not None:
            self.log.append(f"-{address}")
            self._changed()

    def forward(self, family: Family) -> bool:
        del family
        return self.forwards

    def watch(self, changed: Callable[[], None]) -> AbstractContextManager[None]:
        return self._watching(changed)

    # What others do to it

    def delete(self) -> None:
        self.exists = False
        self._present.clear()
        self._changed()

    def add_by_another(self, address: str) -> None:
        self._present[address] = False
        self._changed()

    def remove_by_another(self, address: str) -> None:
        del self._present[address]
        self._changed()

    @contextmanager
    def _watching(self, changed: Callable[[], None]) -> Iterator[None]:
        self._watchers.append(changed)
        try:
            yield
        finally:
            self._watchers.remove(changed)

    def _require(self) -> None:
        if self.refusal:
            raise BridgeError(self.refusal)

    def _changed(self) -> None:
        for changed in self._watchers:
            changed()
