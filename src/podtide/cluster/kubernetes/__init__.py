"""The Cluster port, spoken to a real Kubernetes API server.

`find_access` says which server and as which user; `KubernetesCluster` is the port on it.
"""

from podtide.cluster.kubernetes.access import Access, InvalidAccess
from podtide.cluster.kubernetes.adapter import KubernetesCluster
from podtide.cluster.kubernetes.connection import ApiServerTimeouts
from podtide.cluster.kubernetes.finding import find_access

__all__ = ["Access", "ApiServerTimeouts", "InvalidAccess", "KubernetesCluster", "find_access"]
