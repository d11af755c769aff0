"""`podtide wait`: nothing, until a signal. For pods that have done their work and may not end.

A container's first process is sent no signal that it does not handle: `sleep infinity` there would ignore SIGTERM until it is
killed. And the image need not have a shell.
"""

import click

from podtide.cli.programs.running import Signals, log_option, run, until_told
from podtide.runtime.logging import Logger


@click.command()
@log_option
def wait(*, log: Logger) -> None:
    """Do nothing until SIGTERM or SIGINT, and then end at once.

    For the pod of a DaemonSet whose work is done: it may not end by itself.
    """
    run(lambda: _wait(log), log)


async def _wait(log: Logger) -> None:
    signals = Signals()
    log.info("waiting")
    await until_told(signals, (), log)
    log.info("stopped")
