"""The subnets of this cluster's nodes: how full each is, and which batch and buffer are in force.

The decision is in `core.subnet.batch`; this package reads what it needs, writes ClusterSubnets and tells nodes. Start
with `subnet_reconciler`.
"""
