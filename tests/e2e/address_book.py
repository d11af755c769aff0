"""Who has which address, by what plugins answered: an address that two have at once is the one thing that may not be."""

from threading import Lock

from msgspec import Struct

from e2e.cni import Sandbox


class Held(Struct, frozen=True):
    """An address in use."""

    address: str
    sandbox: Sandbox


class AddressBook:
    """What is in use, written down from many threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: dict[str, Held] = {}
        self.given_twice: list[str] = []

    @property
    def held(self) -> dict[str, Held]:
        """By address."""
        with self._lock:
            return dict(self._held)

    def came(self, new: Held) -> None:
        """A plugin has answered with it."""
        with self._lock:
            if old := self._held.get(new.address):
                self.given_twice.append(
                    f"{new.address} is given to {new.sandbox.pod} while {old.sandbox.pod} has it"
                )
            self._held[new.address] = new

    def goes(self, old: Held) -> None:
        """A plugin is about to be told that it is free: from then on it may be anybody's."""
        with self._lock:
            del self._held[old.address]
