"""`podtide explain`: every decision of the core, with numbers from the command line."""

import click

from podtide.cli.shell.lazy_group import LazyGroup


@click.group(
    cls=LazyGroup,
    lazy={
        "assign": (
            "podtide.cli.explain.assign:assign",
            "Which address the next pod on a secondary network gets.",
        ),
        "batch": ("podtide.cli.explain.batch:batch", "Which batch and buffer are in force for a subnet."),
        "exhaustion": ("podtide.cli.explain.exhaustion:exhaustion", "Whether a subnet is exhausted."),
        "request": ("podtide.cli.explain.request:request", "How many addresses a node asks for."),
        "slices": ("podtide.cli.explain.slices:slices", "Which slice of a secondary network each node gets."),
    },
)
def explain() -> None:
    """Show how podtide decides, with the numbers in the formula."""
