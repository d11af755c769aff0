"""The port between the agent and the bridge of its node."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from podtide.core.errors import RetryError
from podtide.core.pool.address import Family
from podtide.core.pool.bridge_gateways import BridgeAddress


class BridgeError(RetryError):
    """The bridge cannot be read or changed. The message says why, and what to do."""


class Bridge(Protocol):
    """One bridge of the node. Calls are synchronous, and answered by the kernel at once. All may raise BridgeError."""

    @property
    def name(self) -> str:
        """The name of the interface."""
        ...

    def ensure(self) -> tuple[BridgeAddress, ...]:
        """Create the bridge if it is missing, set it up if it is down, and return the addresses that it has.

        Its MAC address is its own and does not change with its ports, because pods remember it as their gateway's.
        """
        ...

    def add(self, address: str) -> None:
        """Put an address (with prefix length) on the bridge, marked as podtide's. Nothing happens if it is there."""
        ...

    def remove(self, address: str) -> None:
        """Take an address off the bridge. Nothing happens if it is not there."""
        ...

    def forward(self, family: Family) -> bool:
        """Have the node forward packets of this family. Returns False if it does not, and the agent may not change that."""
        ...

    def watch(self, changed: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `changed` whenever the bridge or its addresses may have changed, by any program, until the context ends."""
        ...
