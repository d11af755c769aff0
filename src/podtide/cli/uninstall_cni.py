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
    help="The runtime's directory of plugins.",
)
@click.option(
    "--cni-conf-directory",
    type=NamedDirectory(),
    default=Path("/etc/cni/net.d"),
    show_default=True,
    help="The runtime's directory of networks.",
)
def uninstall_cni(*, cni_bin_directory: Path, cni_conf_directory: Path) -> None:
    """Remove what the agent installed on this node: first the network, then the plugin.

    Drain the node and stop its agent first: a running agent installs them again, and a pod that remains cannot be
    deleted without the plugin. Files that are not podtide's are left as they are.
    """
    from podtide.agent.cni_installation import RuntimeDirectories, uninstall  # noqa: PLC0415 - so that --help is quick

    removed = list(uninstall(RuntimeDirectories(plugins=cni_bin_directory, networks=cni_conf_directory)))
    for path in removed:
        click.echo(f"removed {path}")
    if not removed:
        click.echo(f"nothing of podtide's is in {cni_conf_directory} or {cni_bin_directory}")
