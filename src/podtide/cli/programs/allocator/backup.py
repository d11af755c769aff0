"""`podtide allocator backup` and `restore`: copies of the database, and how to restore one safely."""

import asyncio
from pathlib import Path

import click

from podtide.allocator.store import InvalidDatabaseUrl, open_allocator
from podtide.allocator.store import backup as copies
from podtide.cli.options.paths import NamedFile
from podtide.cli.output.formats import output_option, show
from podtide.core.errors import InvalidInput
from podtide.runtime.clock import SystemClock

_SQLITE = "sqlite:///"
_FILE = NamedFile()
_database_option = click.option(
    "--database",
    required=True,
    metavar="URL",
    envvar="PODTIDE_DATABASE",
    show_envvar=True,
    help="The database of the subnets: sqlite:///FILE or postgresql://USER@HOST/NAME.",
)


@click.command()
@click.argument("file", type=_FILE)
@_database_option
@output_option
def backup(*, file: Path, database: str, output: str) -> None:
    """Copy a SQLite database to a new file, while it is used.

    For PostgreSQL use its own tools, such as pg_basebackup or pg_dump.
    """
    if not database.startswith(_SQLITE):
        raise InvalidDatabaseUrl(
            "only a SQLite database is copied by podtide: back PostgreSQL up by its own tools, such as pg_basebackup"
        )
    copied = database.removeprefix(_SQLITE)
    copies.backup(copied, file)
    show(output, {"file": str(file), "database": copied}, [f"{file} is a copy of {copied}"])


@click.command()
@click.argument("file", type=_FILE, required=False)
@_database_option
@output_option
def restore(*, file: Path | None, database: str, output: str) -> None:
    """Put a copy in the place of a SQLite database that no program uses.

    What was granted since the copy was taken is held by nodes. So the allocator grants nothing from then on, until every
    cluster has reported what its nodes hold. For PostgreSQL give no FILE: a database that was restored by other tools is
    then told that it was.
    """
    if database.startswith(_SQLITE):
        if file is None:
            raise InvalidInput(
                "say what to restore the database from: give the FILE that `podtide allocator backup` made"
            )
        copies.restore(database.removeprefix(_SQLITE), file, SystemClock().wall())
    elif file is not None:
        raise InvalidInput(
            "PostgreSQL is restored by its own tools: do that, and then run this command without a FILE"
        )
    else:
        asyncio.run(_tell(database))
    words = (
        "the database was restored: it grants nothing until every cluster has reported what its nodes hold"
    )
    show(output, {"restored_from": str(file) if file else None, "waits_for_reports": True}, [words])


async def _tell(database: str) -> None:
    async with await open_allocator(database, clock=SystemClock()) as store:
        await store.begin_recovery("it was restored by PostgreSQL's own tools")
