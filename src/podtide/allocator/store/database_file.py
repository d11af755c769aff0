"""What is at the path of a SQLite database, looked at before SQLite opens it.

SQLite makes a file where there is none, so a slip in a path would be an empty database, and a question about subnets would
leave a file behind. And what it says of a directory, or of a file of something else, helps nobody.
"""

import os
from pathlib import Path

from podtide.allocator.store.migration import UnusableDatabase

_MAGIC = b"SQLite format 3\0"


def require_database_file(path: str, *, may_be_made: bool) -> None:
    """Raise UnusableDatabase for a path where there is no database, unless `may_be_made` and one can be created there."""
    file = Path(path)
    where = f"--database sqlite:///{path}"
    if file.is_dir():
        raise UnusableDatabase(
            f"{where} names a directory: name a file in it, such as sqlite:///{path}/podtide.db"
        )
    try:
        begins_with = _beginning(file)
    except FileNotFoundError:
        _require_can_be_made(file, where, may_be_made=may_be_made)
        return
    except OSError as error:
        raise UnusableDatabase(
            f"{where} cannot be read ({error.strerror}): correct the path, or who may read it"
        ) from error
    if begins_with not in {b"", _MAGIC}:
        raise UnusableDatabase(
            f"{where} names a file that is no SQLite database: name another, or a path where there is none yet"
        )
    if not os.access(file, os.W_OK):
        raise UnusableDatabase(f"{where} may not be written by this user: correct who owns it, or its mode")


def _beginning(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(len(_MAGIC))


def _require_can_be_made(file: Path, where: str, *, may_be_made: bool) -> None:
    if not may_be_made:
        raise UnusableDatabase(
            f"{where} names no file: correct the path, or start `podtide allocator` on it, which makes one"
        )
    directory = file.absolute().parent
    if not directory.is_dir():
        raise UnusableDatabase(
            f"{where} is in {directory}, which is not a directory: make it, or correct the path"
        )
    if not os.access(directory, os.W_OK):
        raise UnusableDatabase(f"{where} cannot be made: this user may not write in {directory}")
