"""The cluster in a file: every object as it is now, and the last version given out.

A write is in the file, and the file on the disk (WAL, synchronous=FULL), before a client or watcher sees it: a process
killed at any instant has lost nothing it had acknowledged. What happened in between is not kept: a watch from before a
restart is told to list anew.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from podtide import __version__
from podtide.cluster.port import ClusterError, Unavailable
from podtide.core.errors import FixError, RetryError

APPLICATION_ID = 0x706F6474
"""Marks a SQLite file as podtide's: "podt"."""
SCHEMA_VERSION = 1
FIRST_VERSION = 1
"""The version of an empty cluster. Not 0, which to Kubernetes means "any version"."""

_SCHEMA = (
    """CREATE TABLE objects (
        resource TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, document BLOB NOT NULL,
        PRIMARY KEY (resource, key)
    ) WITHOUT ROWID""",
    "CREATE TABLE last (version INTEGER NOT NULL)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)


class UnusableFile(ClusterError, FixError):
    """The file is not an embedded cluster's, is one of a newer podtide, or is damaged."""


class FileInUse(ClusterError, RetryError):
    """Another process has the file open."""


class DamagedFile(UnusableFile):
    """The file is an embedded cluster's, and its content is invalid."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path} is damaged: {what}; put a backup in its place, or name another file")


class StoredObject(Struct, frozen=True, array_like=True):
    """One object as the file has it."""

    resource: str
    version: int
    document: bytes


class ClusterFile:
    """An open file. It is locked for this process until `close`, or until the process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with _readable_errors(path):
            self._database = sqlite3.connect(path, timeout=0, isolation_level=None)
            try:
                self._open()
            except BaseException:
                self._database.close()
                raise

    def _open(self) -> None:
        self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
        is_new = self._check()
        # Only now that it is known to be ours: this changes the file.
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute("BEGIN EXCLUSIVE")
        if is_new:
            for statement in _SCHEMA:
                self._database.execute(statement)
            self._database.execute("INSERT INTO last VALUES (?)", (FIRST_VERSION,))
        self._database.execute("COMMIT")

    def _check(self) -> bool:
        """Whether the file is new; UnusableFile when it is neither that nor ours."""
        application, schema = self._number("PRAGMA application_id"), self._number("PRAGMA user_version")
        if application == 0 and self._number("SELECT count(*) FROM sqlite_schema") == 0:
            return True
        if application != APPLICATION_ID:
            raise UnusableFile(f"{self.path} is a SQLite database, but not of podtide: name another file")
        if schema != SCHEMA_VERSION:
            raise UnusableFile(
                f"{self.path} has schema {schema}, and this podtide {__version__} knows {SCHEMA_VERSION}: install "
                "one as new as the one that wrote it, or name another file; nothing was changed"
            )
        return False

    def _number(self, query: str) -> int:
        match self._database.execute(query).fetchall():
            case [(int(number),)]:
                return number
            case other:
                raise DamagedFile(self.path, f"{query} gives {other}, not a number")

    def version(self) -> int:
        """The last version given out."""
        with _readable_errors(self.path):
            return self._number("SELECT version FROM last")

    def objects(self) -> list[StoredObject]:
        """Every object."""
        with _readable_errors(self.path):
            rows = self._database.execute("SELECT resource, version, document FROM objects").fetchall()
        try:
            return msgspec.convert(rows, list[StoredObject])
        except msgspec.ValidationError as error:
            raise DamagedFile(self.path, f"not every row is an object: {error}") from error

    def write(self, resource: str, key: str, version: int, document: bytes | None) -> None:
        """Store the object (None: delete it) and the version, both or neither; Unavailable when that fails."""
        try:
            self._database.execute("BEGIN")
            if document is None:
                self._database.execute("DELETE FROM objects WHERE resource = ? AND key = ?", (resource, key))
            else:
                self._database.execute(
                    "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)", (resource, key, version, document)
                )
            self._database.execute("UPDATE last SET version = ?", (version,))
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise Unavailable(f"{self.path} could not be written, so nothing was changed: {error}") from error

    def close(self) -> None:
        """Close the file."""
        self._database.close()


@contextmanager
def _readable_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            raise FileInUse(
                f"{path} is in use by another process: stop that one, or name another file"
            ) from error
        if (
            error.sqlite_errorcode == sqlite3.SQLITE_ERROR
        ):  # the query is wrong for it: a table is missing, or a column
            raise DamagedFile(path, str(error)) from error
        raise UnusableFile(
            f"{path} cannot be opened: {error}; name a file in a directory that can be written"
        ) from error
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_CORRUPT:
            raise DamagedFile(path, str(error)) from error
        raise UnusableFile(f"{path} is not a database of podtide: {error}; name another file") from error
