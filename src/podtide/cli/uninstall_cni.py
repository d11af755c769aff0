"""`podtide uninstall-cni`: take the plugin and the primary network off a node."""

from pathlib import Path

import click

from podtide.cli.path_options import NamedDirectory


@click.command(name="uninstall-cni")
@click.option(
    "--cni-bin-directory",
    type=NamedDirectory(),
    default=Path("/opt/cni/bin"),
    show_default=True,
    help="Where the runtime looks for plugins.",
)
@click.option(
    "--cni-conf-directory",
    type=NamedDirectory(),
    default=Path("/etc/cni/net.d"),
    show_default=True,
    help="Where the runtime looks for networks.",
)
def uninstall_cni(*, cni_bin_directory: Path, cni_conf_directory: Path) -> None:
    """Remove what the agent installed on this node: first the network, then the plugin.

    Drain the node and stop its agent before: an agent that runs puts them back, and a pod that is left cannot be
    taken down without the plugin. What is not podtide's is left as it is.
    """
    from podtide.agent.cni_installation import RuntimeDirectories, uninstall  # noqa: PLC0415 - so that --help is quick

    removed = list(uninstall(RuntimeDirectories(plugins=cni_bin_directory, networks=cni_conf_directory)))
    for path in removed:
        click.echo(f"removed {path}")
    if not removed:
        click.echo(f"nothing of podtide's is in {cni_conf_directory} or {cni_bin_directory}")
