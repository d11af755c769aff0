"""The subnets of this cluster's nodes: how full each is, and which batch and buffer are in force.

The decision is in `core.subnet.batch`; here it is fed, written into ClusterSubnets and told to nodes. Start with
`subnet_reconciler`.
"""
