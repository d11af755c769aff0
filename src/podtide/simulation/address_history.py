"""The life of one address as a trace tells it: granted, given to pods, taken back, named for release, gone."""

import re
from collections.abc import Iterable, Iterator

from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.simulation.trace import ClusterWrite, Entry, PluginCall

_ADDRESS = re.compile(r"\b\d+\.\d+\.\d+\.\d+\b")
_LAST = 40


def address_in(words: str) -> str:
    """The first address that a sentence is about; "" when it is about none."""
    found = _ADDRESS.search(words)
    return found[0] if found else ""


def last_states(address: str, entries: Iterable[Entry]) -> tuple[str, ...]:
    """What happened to the address, the newest last. Nothing, where there is none."""
    return tuple(_History(address).tell(entries))[-_LAST:] if address else ()


class _History:
    def __init__(self, address: str) -> None:
        self._address = address
        self._sandboxes: set[str] = set()
        self._granted: dict[str, str] = {}
        """Under which name each node's object lists it."""
        self._named: set[tuple[str, str]] = set()

    def tell(self, entries: Iterable[Entry]) -> Iterator[str]:
        for entry in entries:
            for words in self._words(entry):
                yield f"{entry.at:.3f} {words}"

    def _words(self, entry: Entry) -> Iterator[str]:
        if isinstance(entry, PluginCall):
            if entry.ok and self._address in entry.words.split(", "):
                self._sandboxes.add(entry.sandbox)
            if entry.sandbox in self._sandboxes:
                yield f"{entry} (sandbox {entry.sandbox[:12]})"
        elif isinstance(entry, ClusterWrite) and isinstance(entry.item, NodeNetworkConfig):
            yield from self._of_config(entry, entry.item)

    def _of_config(self, entry: ClusterWrite, config: NodeNetworkConfig) -> Iterator[str]:
        listed = {
            granted.ip: (granted.name, container.version)
            for container in config.status.network_containers
            for granted in container.ip_assignments
        }
        name, version = listed.get(self._address, ("", 0))
        before = self._granted.get(entry.name, "")
        if name != before:
            self._granted[entry.name] = name
            yield (
                f"{entry}: grants it as {name} (version {version})"
                if name
                else f"{entry}: no longer grants {before}"
            )
        known = name or before
        is_named = known in config.spec.ips_not_in_use
        if is_named != ((entry.name, known) in self._named):
            (self._named.add if is_named else self._named.discard)((entry.name, known))
            yield f"{entry}: {known} is {'named' if is_named else 'no longer named'} for release"
