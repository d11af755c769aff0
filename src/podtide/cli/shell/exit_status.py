"""The exit statuses of all commands, in one place: scripts depend on them, and docs/cli.md lists them."""

from enum import IntEnum


class ExitStatus(IntEnum):
    """What a command ends with."""

    DONE = 0
    """It did what was asked, or found nothing wrong."""
    FAILED = 1
    """It could not, for now or for good; or what it looked for is wrong, as `podtide check` says of a violation."""
    BAD_INPUT = 2
    """An argument, an option, a file or the state of things has to change first: one line on stderr says how."""
    INTERRUPTED = 130
    """As shells have it: 128 and the number of SIGINT. A pipeline must not take Ctrl-C for the answer "does not fit"."""
