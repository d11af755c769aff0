"""What a running process has cost so far, as the kernel counts it."""

import os
from pathlib import Path


def memory_bytes(pid: int) -> int:
    """What it has in memory now."""
    return _status_bytes(pid, "VmRSS:")


def peak_memory_bytes(pid: int) -> int:
    """The most that it ever had in memory."""
    return _status_bytes(pid, "VmHWM:")


def cpu_seconds(pid: int) -> float:
    """Time on the processor, its own and the kernel's for it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system = fields[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def exact_cpu_seconds(pid: int) -> float:
    """The same by the scheduler's nanoseconds, for what takes less than a clock tick; threads that have ended are not in it."""
    spent = (each.joinpath("schedstat").read_text() for each in Path(f"/proc/{pid}/task").iterdir())
    return sum(int(line.split()[0]) for line in spent) / 1e9


def _status_bytes(pid: int, field: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition(field)[2].split()[0]) * 1024
