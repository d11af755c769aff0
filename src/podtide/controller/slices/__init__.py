"""Which node has which slice of a secondary network: NetworkAttachmentDefinitions and Nodes in, NodeSlicePools and IPPools out.

Read it in this order:

    program               caches, work queues and event handlers
    network_reconciler    one network: which definition is in force, and the range reconciler for each of its ranges
    range_reconciler      one range: the plan, and the order of its writes
    node_pool_reconciler  the IPPools of slices that are assigned
    slice_removal         what is deleted with a slice, and pools of networks that no longer exist
    slice_rooms           for how many pods each node has addresses, for placement to publish

They share four modules: `attachments` (the definitions), `slice_pools` and `node_pools` (the two kinds of object that
are written), and `survey` (the context of one term, and the current state of a range).
"""
