"""Pods that come and go on one network, by one program: what a kubelet does with an IPAM plugin, errors included."""

from typing import ClassVar
from uuid import uuid4

from msgspec import Struct

from e2e.address_book import AddressBook, Held
from e2e.cni import Document, Plugins, Refused, Sandbox, addresses
from namespaces.namespace import Namespace

INTERFACE = "net1"


class PodStarter(Struct, frozen=True):
    """Whoever gives addresses of the network to the pods of one node."""

    MOST_TRIES: ClassVar[int] = 20

    node: str
    plugins: Plugins
    network: Document
    book: AddressBook

    @property
    def is_podtides(self) -> bool:
        """Whether pods get their addresses from podtide."""
        return bool(self.network["ipam"]["type"] == "podtide")

    def start(self, pod: str) -> Held:
        """Run the pod: a sandbox whose ADD fails is deleted, and another one tried."""
        uid, refusals = str(uuid4()), []
        for number in range(self.MOST_TRIES):
            sandbox = Sandbox(id=f"{pod}-{number}", pod=pod, uid=uid, namespace=Namespace(pod))
            try:
                [address] = addresses(self._call("ADD", sandbox))
            except Refused as refusal:
                refusals.append(str(refusal))
                self._call("DEL", sandbox)
            else:
                held = Held(address, sandbox)
                self.book.came(held)
                return held
        raise AssertionError(f"{pod} has no address after {self.MOST_TRIES} tries: {refusals}")

    def stop(self, held: Held) -> None:
        """End the pod."""
        self.book.goes(held)
        self._call("DEL", held.sandbox)

    def _call(self, verb: str, sandbox: Sandbox) -> Document:
        return self.plugins.run(
            self.network["ipam"]["type"], self.network, sandbox.environment(verb, INTERFACE)
        )
