"""The Cluster port, its adapters, and what stands on the port: informer, work queue, leader election.

    port          all that podtide asks of a Kubernetes API
    embedded/     an API server in this process
    kubernetes/   the adapter for a real one
    served/       the embedded one over HTTP, for kubectl and other processes
    interceptor   the port in front of another one, for what records, delays or fails requests

Knows nothing of addresses. Start with `port`, then `informer`.
"""
