"""`podtide support-bundle`: one file with everything that a problem can be looked into by, and no secrets."""

import asyncio
import io
import os
import tarfile
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from podtide.allocator.errors import AllocatorError
from podtide.allocator.port import Allocator
from podtide.cli.connections.allocator import AllocatorLocation
from podtide.cli.connections.asked_allocator import AskedPlaces, places_options
from podtide.cli.connections.cluster import ClusterConnection
from podtide.cli.options.numbers import BoundedCount
from podtide.cli.output.formats import counted, output_option, show, warn
from podtide.cli.support_bundle.contents import BundleContents, LogLimits
from podtide.cli.support_bundle.redaction import Redactor
from podtide.cluster.port import Cluster
from podtide.core.errors import InvalidInput
from podtide.resources.timestamps import to_time
from podtide.runtime.clock import SystemClock

if TYPE_CHECKING:
    from podtide.cluster.kubernetes import KubernetesCluster

_OWN_ONLY = 0o600
_MOST_LINES = 1_000_000
_MOST_PODS = 10_000


@click.command("support-bundle")
@click.option(
    "--file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    metavar="FILE",
    help="The file to write, which must not exist. Default: podtide-support-TIME.tar.gz here.",
)
@click.option(
    "--log-lines",
    type=BoundedCount(_MOST_LINES),
    default=2000,
    show_default=True,
    help="How many of the last lines of each log to take.",
)
@click.option(
    "--log-pods",
    type=BoundedCount(_MOST_PODS),
    default=50,
    show_default=True,
    help="Of how many of podtide's pods to take logs and metrics.",
)
@places_options
@output_option
def support_bundle(
    *, file: Path | None, log_lines: int, log_pods: int, places: AskedPlaces, output: str
) -> None:
    """Write states, logs, metrics, versions and the result of a check into one file, without secrets.

    Secret objects are never read; tokens, passwords, keys and values of environment variables are taken out of the
    rest. Look through it before you pass it on: names of pods, nodes and namespaces, addresses and logs are in it.
    What could not be read is listed in it and on stderr.
    """
    now = to_time(SystemClock().wall()).replace(":", "").replace("-", "")
    target = file or Path(f"podtide-support-{now}.tar.gz")
    if target.exists():
        raise InvalidInput(f"{target} exists already: name another with --file")
    redactor = Redactor(known_secrets(places.there, places.location))
    problems = asyncio.run(_write(target, places, redactor, LogLimits(log_lines, log_pods)))
    warn(problems)
    size = target.stat().st_size
    words = f"{target}: {size} bytes; {counted(len(problems), 'part is', 'parts are')} missing"
    show(output, {"file": str(target), "bytes": size, "missing": problems}, [words])


def known_secrets(there: ClusterConnection, location: AllocatorLocation | None) -> list[str]:
    """The secrets that this command itself uses, to be taken out word for word."""
    found: list[str] = []
    user = there.access().user
    found += [secret.reveal() for secret in (user.token, user.password) if secret]
    for path in (user.token_file, location.token_file if location else None):
        with suppress(OSError):
            found.append(path.read_text().strip() if path else "")
    if location and location.database and "@" in location.database:
        found.append(location.database.partition("://")[2].rpartition("@")[0].partition(":")[2])
    return found


async def _write(target: Path, places: AskedPlaces, redactor: Redactor, logs: LogLimits) -> list[str]:
    location, namespace = places.location, places.networks_namespace
    async with AsyncExitStack() as open_until_done:
        cluster: Cluster = await open_until_done.enter_async_context(places.there.cluster())
        allocator, in_vain = None, ""
        try:
            allocator = await open_until_done.enter_async_context(location.allocator()) if location else None
        except AllocatorError as error:
            in_vain = location.asked_in_vain(error) if location else ""
        contents = contents_of(cluster, allocator, redactor, namespace, logs)
        if in_vain:
            contents.problems.append(in_vain)
        await write_bundle(target, contents)
        return [redactor.text(line) for line in contents.problems]


def contents_of(
    cluster: Cluster, allocator: Allocator | None, redactor: Redactor, namespace: str, logs: LogLimits
) -> BundleContents:
    """The contents, read from a real API server."""
    kubernetes: KubernetesCluster = cluster  # type: ignore[assignment]  # `ClusterConnection` opens no other
    return BundleContents(
        cluster,
        allocator,
        kubernetes.read,
        namespace=namespace,
        logs=logs,
        redactor=redactor,
        tell=lambda name: click.echo(f"podtide: reading {name}", err=True),
    )


async def write_bundle(target: Path, contents: BundleContents) -> None:
    """Write all files into a compressed archive that only its owner may read."""
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWN_ONLY)
    except OSError as error:
        raise InvalidInput(
            f"{target} cannot be written: {error.strerror}; name another file with --file"
        ) from error
    now = int(SystemClock().wall())
    top = target.name.removesuffix(".tar.gz")
    with os.fdopen(descriptor, "wb") as raw, tarfile.open(fileobj=raw, mode="w:gz") as archive:
        async for file in contents.files():
            entry = tarfile.TarInfo(f"{top}/{file.name}")
            entry.size, entry.mtime, entry.mode = len(file.data), now, _OWN_ONLY
            archive.addfile(entry, io.BytesIO(file.data))
