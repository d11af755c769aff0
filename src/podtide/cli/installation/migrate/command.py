"""`podtide migrate`: from another program's networks to podtide's."""

import click

from podtide.cli.shell.lazy_group import LazyGroup


@click.group(
    cls=LazyGroup,
    lazy={
        "cns": (
            "podtide.cli.installation.migrate.cns:cns",
            "Let podtide take the place of Azure CNS, with all pods running.",
        ),
        "whereabouts": (
            "podtide.cli.installation.migrate.whereabouts:whereabouts",
            "Let podtide take over the secondary networks of a cluster that runs Whereabouts.",
        ),
    },
)
def migrate() -> None:
    """Show and do what lets podtide take over from another program."""
