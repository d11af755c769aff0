"""Placement: what nodes publish so that a scheduler places pods where they can have an address.

    subnet_rooms       the room of every node of a subnet, and when it changes; start here
    node_resources     what a Node publishes, and what it is to publish, as values
    node_publisher     writes it: extended resources of the Node's status, and the taint
    network_publisher  writes for how many pods a Node has addresses of secondary networks
    coverage           schedulable Nodes that publish nothing
    full_condition     the condition of a ClusterSubnet that no address can be had

The rule is `core.subnet.placement`. Only the condition exists without `--placement`.
"""
