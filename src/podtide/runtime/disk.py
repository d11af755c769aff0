"""The Disk port: what a program keeps in files, and what it may rely on when the machine loses power.

A disk here is one directory that belongs to one program at a time. The docstrings are the contract; one suite proves
it for the real one (`directory_disk`) and for one in memory that can crash (`memory_disk`). Everything blocks: a
program that must not wait hands calls to an executor, a simulation makes them inline.

Writing and syncing are two steps, because between them lies all that a crash can do: what was synced is there
afterwards, of what was only appended any beginning may be. So a reader of a log must expect a torn last record, and
`open_log` takes the length that was found to be good: nothing is ever appended behind a torn record.
"""

from typing import Protocol, Self

from podtide.core.errors import FixError, PodtideError, RetryError, StopError


class DiskError(PodtideError):
    """A failure of the disk. Every method of the port raises only these."""


class DiskFull(DiskError, RetryError):
    """No space or quota is left. Nothing was changed; it works again when there is room."""


class NotPermitted(DiskError, FixError):
    """The program may not read or write here, or the file system is read-only."""


class WrongPath(DiskError, FixError):
    """The path names something of another kind, such as a file where a directory must be."""


class Locked(DiskError, FixError):
    """Another process holds the lock, and so the directory."""


class DiskFailed(DiskError, StopError):
    """The disk broke, or a log is used that failed or was closed. What reached the disk is unknown."""


class Log(Protocol):
    """A file that only grows."""

    def append(self, content: bytes) -> None:
        """Write at the end. Until `sync`, a crash may keep any beginning of it, or none.

        DiskFull leaves the log as it was before the call.
        """
        ...

    def sync(self) -> None:
        """Everything appended so far is durable when this returns.

        If it fails the log is lost for writing: the kernel may have dropped what it could not write, and would
        report success the next time. What is read of it afterwards may be in memory alone, and syncing it again proves
        nothing: `replace` it by what was read, which is written anew, and go on with that.
        """
        ...

    def close(self) -> None:
        """Stop writing. Does not sync."""
        ...


class Lock(Protocol):
    """A lock that is held until it is released, or until the process ends, however it ends."""

    def release(self) -> None:
        """Release the lock."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Disk(Protocol):
    """A directory with durable files. Names are plain file names."""

    def lock(self, name: str) -> Lock:
        """Take the lock, or raise Locked at once if it is held, in this process or another."""
        ...

    def read(self, name: str) -> bytes | None:
        """The file's content, synced or not; None if it does not exist."""
        ...

    def replace(self, name: str, content: bytes) -> None:
        """Put a file of this content in place of the one there, if any. Durable when it returns.

        A reader finds the old content or the new, whole, also after a crash. A Log that was open on the
        file goes on with the old one, which no longer has a name: write nothing to it any more.

        DiskFailed means that it is unknown which of the two is there, now or after a crash. Every other error means that
        nothing was changed.
        """
        ...

    def names(self) -> list[str]:
        """The names of the files there, in order. Those that begin with a dot are left out: they are being written."""
        ...

    def remove(self, name: str) -> None:
        """Remove the file, if it is there. Durable when it returns."""
        ...

    def open_log(self, name: str, good_bytes: int) -> Log:
        """Open a log to append to, or make an empty one. What lies beyond `good_bytes` is cut off, durably.

        A file shorter than that is not the one that was read: DiskFailed. Only one Log at a time may be open on a name: the lock sees to that across processes.
        """
        ...
