"""`podtide uninstall-cni`: take the plugin and the primary network off a node."""

from itertools import chain
from pathlib import Path

import click

from podtide.cli.options.paths import NamedDirectory
from podtide.cli.output.formats import ToldSteps, output_option


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
@click.option(
    "--state-directory",
    type=NamedDirectory(),
    help="Remove the agent's journals from this directory too, which is /var/lib/podtide. Default: they stay.",
)
@click.option(
    "--socket-directory",
    type=NamedDirectory(),
    help="Remove the agent's socket and notes from this directory too, which is /run/podtide. Default: they stay.",
)
@output_option
def uninstall_cni(
    *,
    cni_bin_directory: Path,
    cni_conf_directory: Path,
    state_directory: Path | None,
    socket_directory: Path | None,
    output: str,
) -> None:
    """Remove what the agent installed on this node: the network, the plugin, and the bridge if it has one.

    Drain the node and stop its agent first: a running agent installs them again, and a pod that remains cannot be
    deleted without the plugin. Files that are not podtide's are left as they are, and so is a bridge with pods on it.
    """
    from podtide.agent.cni_installation import RuntimeDirectories, uninstall  # noqa: PLC0415 - so that --help is quick
    from podtide.agent.node_files import remove_socket, remove_state  # noqa: PLC0415 - as above

    # Records first: these are locked by an agent that runs, and it would put the others back.
    sources = [uninstall(RuntimeDirectories(plugins=cni_bin_directory, networks=cni_conf_directory))]
    sources += [remove_socket(socket_directory)] if socket_directory else []
    sources = ([remove_state(state_directory)] if state_directory else []) + sources
    tell = ToldSteps(output)
    removed: list[str] = []
    for path in chain.from_iterable(sources):
        tell(f"removed {path}")
        removed.append(str(path))
    if not removed:
        tell(f"nothing of podtide's is in {cni_conf_directory} or {cni_bin_directory}")
    if said := _remove_bridge():
        tell(said)
    tell.document(removed=removed)


def _remove_bridge() -> str:
    """Delete the node's bridge, unless something is on it. Returns what was done, in words; "" without a bridge.

    A bridge that stays does no harm to pods, and a runtime reads only the files: so that is not a failure.
    """
    from podtide.agent.bridge.netlink_bridge import NetlinkBridge  # noqa: PLC0415 - so that --help is quick
    from podtide.agent.bridge.port import BridgeError  # noqa: PLC0415 - as above
    from podtide.cni.conflist import BRIDGE  # noqa: PLC0415 - as above

    by_hand = f"delete it by `ip link delete {BRIDGE}` on the node"
    try:
        bridge = NetlinkBridge(BRIDGE)
        try:
            ports = bridge.ports()
            if ports is None:
                return ""
            if ports:
                return f"left the bridge {BRIDGE}: {len(ports)} interfaces of pods are on it; when they are gone, {by_hand}"
            bridge.delete()
        finally:
            bridge.close()
    except BridgeError as error:
        return f"left the bridge {BRIDGE}: {error}; or {by_hand}"
    return f"removed the bridge {BRIDGE}"
