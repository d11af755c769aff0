"""The node agent: owns the node's pool of addresses and answers the CNI plugin.

    program      the watches and loops of a node with a pool; `secondary_program` for one without
    api/         the socket, the CNI verbs, the API of Azure CNS, deletion notes, waiting ADDs
    bridge/      the gateways on the node's bridge, where the primary network is one
    networks/    addresses of secondary networks
    request/     from demand to the NodeNetworkConfig's spec, and from its status into the pool
    pool/        the pool with its journal, its recovery and the leak collector
    port         the port between the API and the node's addresses

An ADD from the pool makes no call to the cluster. The agent knows neither controller nor allocator. Start with `program`.
"""
