"""What this program was called by: `podtide`, or as a plugin of kubectl, which finds `kubectl-podtide` in PATH."""

import sys
from pathlib import Path

NAME = "podtide"
PLUGIN = "kubectl-podtide"


def program_name() -> str:
    """The name of the executable."""
    return PLUGIN if sys.argv and Path(sys.argv[0]).name == PLUGIN else NAME


def complete_variable() -> str:
    """The environment variable by which a shell asks the program to complete a command line."""
    return f"_{program_name().upper().replace('-', '_')}_COMPLETE"


def shown_name() -> str:
    """How a person calls it, for usage and messages: kubectl's plugins are called through kubectl."""
    return "kubectl podtide" if program_name() == PLUGIN else NAME
