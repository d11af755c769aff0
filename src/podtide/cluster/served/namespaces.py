"""What namespaces do here: two are there from the start, and deleting one deletes what is in it."""

from podtide.cluster.embedded import ApiServer, ObjectSelection
from podtide.cluster.embedded.namespaces import make_namespaces
from podtide.cluster.served.kinds import STANDING_NAMESPACES


def make_standing_namespaces(server: ApiServer) -> None:
    """Make those that every cluster has, where they are missing."""
    make_namespaces(server, STANDING_NAMESPACES)


def empty_namespace(server: ApiServer, namespace: str) -> None:
    """Delete all objects in it. What has finalizers stays until they are taken away."""
    for table in tuple(server.store.tables.values()):
        if table.kind.api.namespaced:
            for record in server.list(table.kind, ObjectSelection(namespace=namespace)).records:
                server.delete(table.kind, record.name, namespace, grace_seconds=0)
