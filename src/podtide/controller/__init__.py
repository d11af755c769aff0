"""The controller, once per cluster: turns nodes' requests into allocations and decides each subnet's batch.

    program         its parameters, and how it runs as one of several replicas
    leader          everything that runs while this replica leads
    fencing         writes and allocator calls that fail once the term is over
    allocator_term  whether the allocator lets this controller act for its cluster
    nodes/          a Node, its NodeNetworkConfig and its network containers
    subnets/        how full a subnet is, and which batch is in force
    placement/      what Nodes publish, so that pods are placed where addresses are
    slices/         which node has which slice of a secondary network
    repair/         addresses and reservations of secondary networks that leaked

It knows the cluster and the allocator, and never an agent. Start with `leader`.
"""
