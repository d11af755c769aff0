"""What the journal costs: addresses assigned and freed in a pool on a real disk, each in the journal before it is so.

The journal is shortened along the way as often as it would be on a node, and the last one is read as at a start.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from podtide.agent.pool.journaled_pool import JournaledPool
from podtide.core.pool.pool import GrantedContainer, Owner
from podtide.runtime.clock import SystemClock
from podtide.runtime.directory_disk import DirectoryDisk
from podtide.runtime.logging import make_logger

PART = "agent"
ADDRESSES = 250
PAIRS = 20_000


def measure() -> Iterator[tuple[str, str]]:
    """A node whose pool is half full, then the same node after a kill."""
    with TemporaryDirectory() as name:
        kept = _open(Path(name))
        addresses = {f"name-{n}": f"10.1.0.{n}" for n in range(ADDRESSES)}
        kept.apply(GrantedContainer("nc", 1, 4, addresses))
        kept.programmed(addresses)
        for number in range(ADDRESSES // 2):
            kept.assign(_owner(f"resident-{number}"))
        begin = perf_counter()
        for number in range(PAIRS):
            owner = _owner(f"sandbox-{number}")
            kept.assign(owner)
            kept.free(owner.sandbox, owner.interface)
        rate = PAIRS / (perf_counter() - begin)
        yield "assign + free with the journal on the disk", f"{rate:,.0f} pairs/s"
        kept.close()
        kilobytes = sum(file.stat().st_size for file in Path(name).iterdir()) / 1e3
        begin = perf_counter()
        _open(Path(name)).close()
        label = f"reading that journal: {kilobytes:.0f} kB after {PAIRS:,} pods"
        yield label, f"{(perf_counter() - begin) * 1e3:.1f} ms"


def _open(directory: Path) -> JournaledPool:
    clock = SystemClock()
    log = make_logger(sys.stderr, clock, level="error")
    return JournaledPool.open(DirectoryDisk(directory), cooldown_seconds=30.0, clock=clock, log=log)


def _owner(sandbox: str) -> Owner:
    return Owner(sandbox, "eth0", f"uid-of-{sandbox}", "default", f"pod-of-{sandbox}", "pods")
