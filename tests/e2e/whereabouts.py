"""Whereabouts as its users have it: the plugin, the file that it reads at each start, and its own definitions of its kinds."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from msgspec import Struct

from control_plane.cluster import ControlPlane
from control_plane.errors import RequestFailed
from control_plane.installation import DEFINITIONS, wait_until_served
from e2e.address_book import AddressBook
from e2e.cni import Document, Plugins
from e2e.pod_starter import PodStarter
from e2e.pools import WHEREABOUTS
from e2e.programs import Site
from e2e.waiting import wait_until


class SideBySide(Struct, frozen=True):
    """Nodes on which either program's plugin can be run, for the same networks."""

    site: Site
    plugins: Path
    """The directory that has both, under the names that networks have for them."""

    @classmethod
    def made(cls, site: Site, ours: Path, theirs: Path) -> "SideBySide":
        """Put these executables in place."""
        plugins = site.directory / "plugins"
        plugins.mkdir()
        (plugins / "podtide").symlink_to(ours)
        (plugins / "whereabouts").symlink_to(theirs)
        reach = {"kubernetes": {"kubeconfig": str(site.control_plane.kubeconfig)}}
        (plugins / "whereabouts.conf").write_text(json.dumps(reach))
        return cls(site, plugins)

    def network(self, name: str, **ipam: object) -> Document:
        """A secondary network of podtide's."""
        named = {"type": "podtide", "network_name": name, **ipam}
        return {"cniVersion": "1.0.0", "name": name, "type": "macvlan", "ipam": named}

    def for_whereabouts(self, network: Document) -> Document:
        """The same network, of Whereabouts'."""
        ipam = {"type": "whereabouts", "configuration_path": str(self.plugins / "whereabouts.conf")}
        return network | {"ipam": network["ipam"] | ipam}

    def ours(self, node: str, network: Document, book: AddressBook) -> PodStarter:
        """Who starts pods by podtide on a node, which must have an agent."""
        environment = {"PODTIDE_SOCKET": str(self.site.agent_socket(node))}
        return PodStarter(node, Plugins((self.plugins,), environment), network, book)

    def theirs(self, node: str, network: Document, book: AddressBook) -> PodStarter:
        """Who starts pods by Whereabouts on a node."""
        plugins = Plugins((self.plugins,), {"NODENAME": node})
        return PodStarter(node, plugins, self.for_whereabouts(network), book)


@contextmanager
def whereabouts_kinds(control_plane: ControlPlane, source: Path) -> Iterator[None]:
    """Whereabouts' own definitions of its kinds in the place of podtide's, which have more fields."""
    documents = [
        yaml.safe_load(file.read_text()) for file in sorted((source / "doc" / "crds").glob("*_*.yaml"))
    ]
    specs = {document["metadata"]["name"]: document["spec"] for document in documents}
    before = {name: control_plane.admin.request("GET", f"{DEFINITIONS}/{name}")["spec"] for name in specs}
    try:
        for name, spec in specs.items():
            _define(control_plane, name, spec)
        wait_until(lambda: not _keeps_uids(control_plane), "Whereabouts' definitions in force")
        wait_until_served(control_plane.admin)
        yield
    finally:
        for name, spec in before.items():
            _define(control_plane, name, spec)
        wait_until(lambda: _keeps_uids(control_plane), "podtide's definitions in force")
        wait_until_served(control_plane.admin)


def _define(control_plane: ControlPlane, name: str, spec: Document) -> None:
    found = control_plane.admin.request("GET", f"{DEFINITIONS}/{name}")
    control_plane.admin.request("PUT", f"{DEFINITIONS}/{name}", found | {"spec": spec})


def _keeps_uids(control_plane: ControlPlane) -> bool:
    """Whether the API server keeps the field that podtide adds to an allocation."""
    pool = {
        "apiVersion": "whereabouts.cni.cncf.io/v1alpha1",
        "kind": "IPPool",
        "metadata": {"name": "probe"},
        "spec": {"range": "10.0.0.0/24", "allocations": {"1": {"id": "i", "podref": "p", "poduid": "u"}}},
    }
    try:
        kept = control_plane.admin.request("POST", f"{WHEREABOUTS}/ippools?dryRun=All", pool)
    except RequestFailed:  # a kind whose definition has just changed is not served for a moment
        return False
    return "poduid" in kept["spec"]["allocations"]["1"]
