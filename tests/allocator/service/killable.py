"""`podtide allocator` as a process that starts at once: what it imports is imported once, for all that are started."""

import multiprocessing
import os
import sys
from multiprocessing.context import ForkServerProcess

from podtide.cli import main
from podtide.cli.programs import allocator

PRELOADED = (__name__, allocator.__name__)


def start(database: str, port: int) -> ForkServerProcess:
    """A service on the database, which is about to listen on the port."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    process = context.Process(target=_serve, args=(database, port))
    process.start()
    return process


def _serve(database: str, port: int) -> None:
    os.environ |= {"PODTIDE_CONTACT_TIMEOUT": "10ms"}
    sys.argv = ["podtide", "allocator", "--database", database, "--listen", f"127.0.0.1:{port}"]
    sys.argv += ["--cooldown", "20ms", "--quarantine", "50ms", "--log-level", "error"]
    main()
