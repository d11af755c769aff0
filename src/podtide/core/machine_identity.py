"""Which machine a Node was, and whether it has been booted since: what the pods of a removed Node may still run on.

A Node's uid changes whenever it is registered; what it runs on does not. The kubelet states three ids of its machine
(`status.nodeInfo`): the operating system's, the firmware's, and one that every boot draws anew. Clones of one image can
share the first, and some hypervisors give all guests the second, so only all three together are a proof:

    all three equal           the same boot: every sandbox of the former Node may live, here and nowhere else
    only the boot differs     the machine was booted since: no sandbox of before lives anywhere
    anything else             another machine, or one that does not say: that proves nothing about the former one
"""

from enum import Enum, auto

from msgspec import Struct


class Kinship(Enum):
    """How the machine that has a node's name now relates to the one that had it before."""

    SAME_BOOT = auto()
    BOOTED_SINCE = auto()
    UNPROVEN = auto()


class MachineIdentity(Struct, frozen=True):
    """A machine as its kubelet states it; "" for what it does not say."""

    machine_id: str = ""
    system_uuid: str = ""
    boot_id: str = ""

    @property
    def is_known(self) -> bool:
        """Whether it says enough to be recognised."""
        return bool(self.machine_id and self.system_uuid and self.boot_id)


UNKNOWN_MACHINE = MachineIdentity()


def kinship(former: MachineIdentity, present: MachineIdentity) -> Kinship:
    """How the present machine relates to the former one."""
    if not (former.is_known and present.is_known):
        return Kinship.UNPROVEN
    if (former.machine_id, former.system_uuid) != (present.machine_id, present.system_uuid):
        return Kinship.UNPROVEN
    return Kinship.SAME_BOOT if former.boot_id == present.boot_id else Kinship.BOOTED_SINCE
