"""The embedded cluster over HTTP, in Kubernetes' own shape: for kubectl, and for our own adapter in other processes.

It has no authentication and no TLS, and listens on the loopback address alone: it is for demos, tests and laptops.
"""

from podtide.cluster.served.kinds import SERVED_KINDS
from podtide.cluster.served.server import serving

__all__ = ["SERVED_KINDS", "serving"]
