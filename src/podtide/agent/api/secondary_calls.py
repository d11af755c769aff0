"""The CNI verbs for networks with ranges of their own: each waits for the cluster, and is answered once it is written.

`cni_calls` decides which network a call is about, and `agent.networks` assigns the addresses; this is the adapter between
the two.
"""

from collections.abc import Set as AbstractSet

from podtide.agent.api.call_log import CallEntry
from podtide.agent.api.deletion_notes import DeletionNotes
from podtide.agent.networks.configuration_cache import read_for_deletion
from podtide.agent.networks.secondary_networks import SecondaryNetworks
from podtide.agent.port import NotAssigned, NotReady
from podtide.cni.errors import NotAvailable, UnknownContainer
from podtide.cni.ipam_config import IpamConfig
from podtide.cni.results import render_result
from podtide.core.pool.pool import Owner
from podtide.core.ranges import IPAddress
from podtide.runtime.clock import Clock

_NOTHING = b""


class SecondaryCalls:
    """The verbs for a node's secondary networks."""

    def __init__(self, networks: SecondaryNetworks, notes: DeletionNotes, *, clock: Clock) -> None:
        self._networks = networks
        self._notes = notes
        self._clock = clock

    async def add(self, owner: Owner, config: IpamConfig, arrived: float, entry: CallEntry) -> bytes:
        """ADD: an address from each range, with the routes and DNS settings of the configuration."""
        if await self._notes.carry_out_anywhere(owner.sandbox, owner.interface):
            # The DEL in the note was called before this ADD, though it is carried out only now.
            arrived = self._clock.monotonic()
        given = await self._networks.add(owner, config, arrived=arrived)
        entry.addresses = tuple(str(each.address.ip) for each in given)
        return render_result(config.result(given), config.cni_version)

    async def delete(self, owner: Owner, stdin: bytes, entry: CallEntry) -> bytes:
        """DEL: free the sandbox's addresses, even if the configuration is invalid by now."""
        freed = await self._networks.delete(owner, read_for_deletion(stdin))
        entry.addresses += tuple(map(str, freed))
        return _NOTHING

    async def check(
        self, owner: Owner, config: IpamConfig, stated: AbstractSet[IPAddress], entry: CallEntry
    ) -> bytes:
        """CHECK: every range has an address for the sandbox, and the runtime's result has them."""
        try:
            held = await self._networks.check(owner, config)
        except NotAssigned as error:
            raise UnknownContainer(str(error)) from error
        entry.addresses = tuple(map(str, held))
        require_stated(held, stated, owner)
        return _NOTHING

    async def status(self) -> bytes:
        """STATUS: NotAvailable until the cluster was reached."""
        try:
            await self._networks.require_ready()
        except NotReady as error:
            raise NotAvailable(str(error)) from error
        return _NOTHING

    async def collect_garbage(self, config: IpamConfig, alive: frozenset[tuple[str, str]]) -> bytes:
        """GC: free what is not `alive` and known to belong to that configuration."""
        await self._networks.collect_garbage(config, alive)
        return _NOTHING

    def knows(self, owner: Owner) -> bool:
        """Whether the sandbox's interface has addresses here, as far as this agent has recorded."""
        return self._networks.knows(owner)


def require_stated(held: tuple[IPAddress, ...], stated: AbstractSet[IPAddress], owner: Owner) -> None:
    """NotAssigned unless all held addresses are in `stated`, the result that the runtime has."""
    missing = [str(each) for each in held if each not in stated]
    if missing:
        raise NotAssigned(
            f"prevResult lacks {', '.join(missing)}, which {owner.sandbox} has on {owner.interface}: "
            "it belongs to another ADD; create the sandbox again"
        )
