"""The controller, once per cluster: turns nodes' requests into allocations and decides each subnet's batch.

    program      what it is given, and how it runs as one of several replicas
    leader       all that runs while this replica leads
    nodes/       a Node, its NodeNetworkConfig and its network containers
    subnets/     how full a subnet is, and which batch is in force
    slices/      which node has which slice of a secondary network
    repair/      addresses and reservations of secondary networks that leaked

It knows the cluster and the allocator, and never an agent. Start with `leader`.
"""
