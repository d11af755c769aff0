"""The namespaces that every cluster has: made when they are first needed, and kept with the other objects.

An object may be in any namespace, whether or not that was created. But the uid of kube-system identifies the cluster, so
that one has to exist, and to stay the same.
"""

from collections.abc import Sequence

from podtide.cluster.embedded.api_server import ApiServer
from podtide.resources.namespace import Namespace


def make_namespaces(server: ApiServer, names: Sequence[str]) -> None:
    """Create those of the namespaces that are missing."""
    for name in names:
        if not server.has(Namespace, name):
            document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            server.create(Namespace, document, manager="podtide")
