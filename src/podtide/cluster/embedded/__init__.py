"""A Kubernetes API in this process: the Cluster port over objects in memory, and in a file if wanted."""

from podtide.cluster.embedded.adapter import EmbeddedCluster
from podtide.cluster.embedded.api_server import ApiServer, ApiServerLimits, ObjectSelection
from podtide.cluster.embedded.persistence import FileInUse, UnusableFile

__all__ = ["ApiServer", "ApiServerLimits", "EmbeddedCluster", "FileInUse", "ObjectSelection", "UnusableFile"]
