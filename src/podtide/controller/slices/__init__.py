"""Which node has which slice of a secondary network: from NetworkAttachmentDefinitions and Nodes to NodeSlicePools and IPPools.

Start with `program`, then `network_reconciler`, `range_reconciler` and `node_pool_reconciler`, in this order.
"""
