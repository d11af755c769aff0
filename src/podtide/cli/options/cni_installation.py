"""The options by which an agent is told to install its plugin and the node's primary network."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from podtide.agent.cni_installation import Installation, RuntimeDirectories, read_plugin
from podtide.cli.options.paths import NamedDirectory, NamedFile
from podtide.cni.conflist import InterfaceType, ListVersion, PrimaryNetwork
from podtide.core.errors import InvalidInput
from podtide.core.exact import shortened
from podtide.core.ranges import parse_network
from podtide.runtime.plugin_executable import find_plugin

Command = TypeVar("Command", bound=Callable[..., Any])

_DEFAULT = PrimaryNetwork()


class _Route(click.ParamType[str]):
    """A CIDR that pods reach."""

    name = "route"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The route as it was written."""
        del param, ctx
        try:
            parse_network(value)
        except InvalidInput as error:
            raise InvalidInput(
                f"--route={shortened(value)} is refused: give a CIDR, such as 10.0.0.0/8, or ::/0 for all of IPv6"
            ) from error
        return str(value)


def installation_options(command: Command) -> Command:
    """Adds the options; the command gets an `Installation`, or None, as `installation`."""

    @wraps(command)
    def installing(  # noqa: PLR0913 - one argument per option
        *,
        cni_bin_directory: Path | None,
        cni_conf_directory: Path | None,
        plugin: Path | None,
        for_whereabouts: bool,
        network_name: str,
        cni_version: str,
        network_type: str,
        mtu: int,
        ip_masq: bool,
        route: tuple[str, ...],
        **others: Any,
    ) -> Any:
        network = PrimaryNetwork(
            name=network_name,
            cni_version=ListVersion(cni_version),
            type=InterfaceType(network_type),
            mtu=mtu,
            ip_masq=ip_masq,
            routes=route,
        )
        where = _directories(cni_bin_directory, cni_conf_directory)
        return command(
            installation=_installation(where, plugin, network, for_whereabouts=for_whereabouts), **others
        )

    for option in reversed(_OPTIONS):
        installing = option(installing)
    return installing  # type: ignore[return-value]  # its options are the command's and these


_OPTIONS = (
    click.option(
        "--cni-bin-directory",
        type=NamedDirectory(),
        help="The runtime's directory of plugins, into which the agent installs its own once it is ready. Default: none.",
    ),
    click.option(
        "--cni-conf-directory",
        type=NamedDirectory(),
        help="The runtime's directory of networks, into which the agent writes the primary one once it is ready. Default: none.",
    ),
    click.option(
        "--plugin",
        type=NamedFile(),
        envvar="PODTIDE_PLUGIN",
        help="The plugin to install. Default: $PODTIDE_PLUGIN, else the one that comes with podtide.",
    ),
    click.option(
        "--for-whereabouts", is_flag=True, help="Install the plugin under the name whereabouts as well."
    ),
    click.option(
        "--network-name",
        default=_DEFAULT.name,
        metavar="NAME",
        show_default=True,
        help="The primary network's name.",
    ),
    click.option(
        "--cni-version",
        type=click.Choice([each.value for each in ListVersion]),
        default=_DEFAULT.cni_version.value,
        show_default=True,
        help="The newest CNI version of the primary network; 1.1.0 has STATUS, and all its interface plugins must know it.",
    ),
    click.option(
        "--network-type",
        type=click.Choice([each.value for each in InterfaceType]),
        default=_DEFAULT.type.value,
        show_default=True,
        help="The plugin that creates the interfaces of pods.",
    ),
    click.option(
        "--mtu",
        type=int,
        default=_DEFAULT.mtu,
        show_default="the interface plugin's own",
        help="The MTU of pods' interfaces; 0 leaves it to the interface plugin.",
    ),
    click.option(
        "--ip-masq/--no-ip-masq",
        default=_DEFAULT.ip_masq,
        show_default=True,
        help="Whether packets of pods that leave their subnet get the node's address as source (SNAT).",
    ),
    click.option(
        "--route",
        type=_Route(),
        multiple=True,
        default=_DEFAULT.routes,
        metavar="CIDR",
        show_default=True,
        help="A CIDR that pods reach through their gateway; may be repeated.",
    ),
)


def _directories(plugins: Path | None, networks: Path | None) -> RuntimeDirectories | None:
    if plugins is not None:
        return RuntimeDirectories(plugins=plugins, networks=networks)
    if networks is not None:
        raise InvalidInput(
            "a network needs its plugin: with --cni-conf-directory give --cni-bin-directory, too, or neither"
        )
    return None


def _installation(
    where: RuntimeDirectories | None, plugin: Path | None, network: PrimaryNetwork, *, for_whereabouts: bool
) -> Installation | None:
    if where is None:
        return None
    chosen = plugin if plugin is not None else find_plugin()
    read_plugin(chosen)  # that it is none is said at once
    return Installation(where=where, plugin=chosen, network=network, for_whereabouts=for_whereabouts)
