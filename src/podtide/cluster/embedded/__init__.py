"""A Kubernetes API in this process: the Cluster port over objects in memory, and in a file if wanted."""

from podtide.cluster.embedded.adapter import EmbeddedCluster, Limits
from podtide.cluster.embedded.persistence import FileInUse, UnusableFile

__all__ = ["EmbeddedCluster", "FileInUse", "Limits", "UnusableFile"]
