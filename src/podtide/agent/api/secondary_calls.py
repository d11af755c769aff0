"""The CNI verbs of networks with ranges of their own: each waits for the cluster, and is answered when it is written.

Which network a call is about is decided in `cni_calls`. What differs from the node's pool is in `agent.networks`; this
is what lies between the two.
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
    """The verbs, on a node's secondary networks."""

    def __init__(self, networks: SecondaryNetworks, notes: DeletionNotes, *, clock: Clock) -> None:
        self._networks = networks
        self._notes = notes
        self._clock = clock

    async def add(self, owner: Owner, config: IpamConfig, arrived: float, entry: CallEntry) -> bytes:
        """ADD: an address from each range, with all that the configuration says goes with them."""
        if await self._notes.carry_out_anywhere(owner.sandbox, owner.interface):
            # The DEL in the note came first, though it is carried out only now.
            arrived = self._clock.monotonic()
        given = await self._networks.add(owner, config, arrived=arrived)
        entry.addresses = tuple(str(each.address.ip) for each in given)
        return render_result(config.result(given), config.cni_version)

    async def delete(self, owner: Owner, stdin: bytes, entry: CallEntry) -> bytes:
        """DEL: whatever became of the configuration, the sandbox is let go."""
        freed = await self._networks.delete(owner, read_for_deletion(stdin))
        entry.addresses += tuple(map(str, freed))
        return _NOTHING

    async def check(
        self, owner: Owner, config: IpamConfig, stated: AbstractSet[IPAddress], entry: CallEntry
    ) -> bytes:
        """CHECK: every range has an address for the sandbox, and the runtime goes by these."""
        try:
            held = await self._networks.check(owner, config)
        except NotAssigned as error:
            raise UnknownContainer(str(error)) from error
        entry.addresses = tuple(map(str, held))
        require_stated(held, stated, owner)
        return _NOTHING

    async def status(self) -> bytes:
        """STATUS: whether the cluster has been reached."""
        try:
            await self._networks.require_ready()
        except NotReady as error:
            raise NotAvailable(str(error)) from error
        return _NOTHING

    async def collect_garbage(self, config: IpamConfig, alive: frozenset[tuple[str, str]]) -> bytes:
        """GC: what is not alive, as far as it is known to be of that configuration."""
        await self._networks.collect_garbage(config, alive)
        return _NOTHING

    def knows(self, owner: Owner) -> bool:
        """Whether the sandbox's interface has anything here, as far as memory goes."""
        return self._networks.knows(owner)


def require_stated(held: tuple[IPAddress, ...], stated: AbstractSet[IPAddress], owner: Owner) -> None:
    """NotAssigned unless all that is held is in the answer that the runtime goes by."""
    missing = [str(each) for each in held if each not in stated]
    if missing:
        raise NotAssigned(
            f"prevResult lacks {', '.join(missing)}, which {owner.sandbox} has on {owner.interface}: "
            "it is the answer to another ADD; make the sandbox anew"
        )
