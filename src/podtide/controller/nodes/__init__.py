"""A node's way through the controller: from the Node to its NodeNetworkConfig and network containers, and back.

Start with `node_reconciler`, which calls `request_reconciler` for what the node asks for. `retirement` and `quarantine` are
about Nodes that are gone, `recovery_report` about an allocator whose database went back.
"""
