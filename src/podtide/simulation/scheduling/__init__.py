"""Placement in a simulated cluster: pods that come without a node, and what finds one for them.

    pod_scheduler      binds pods to nodes by what Nodes publish, as kube-scheduler does; start here
    address_policy     the admission policy that makes pods request an address
    pod_owner          makes another pod for one that failed, as a ReplicaSet does

Whether a pod fits on a node is `nodes.node_fit`, and a kubelet's own check `nodes.node_admission`.
"""
