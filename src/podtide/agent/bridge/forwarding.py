"""Whether the node forwards packets, which a gateway has to.

The kernel's switch is off on a bare machine. The bridge plugin turns it on where it puts gateways; the agent, in its
place, does so where it may. In a pod it may not: /proc/sys is read-only there without privileges. But a Kubernetes node
has forwarding on in any case.
"""

from pathlib import Path

from podtide.core.pool.address import Family

SYSCTLS: dict[Family, str] = {4: "net.ipv4.ip_forward", 6: "net.ipv6.conf.all.forwarding"}
"""The switch of each family, as sysctl names it."""
_DIRECTORY = Path("/proc/sys")
_OFF, _ON = "0", "1"


def turn_on_forwarding(family: Family, directory: Path = _DIRECTORY) -> bool:
    """Turn forwarding on if it is off. Returns False if it stays off, because this process may not change it."""
    switch = directory / SYSCTLS[family].replace(".", "/")
    try:
        if switch.read_text().strip() == _OFF:
            switch.write_text(_ON)
    except FileNotFoundError:
        return True  # a node without this family has nothing to forward
    except OSError:
        return False
    return True
