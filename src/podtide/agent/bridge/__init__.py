"""The node's bridge: with `--network-type bridge` the agent keeps the gateways of all CIDRs of the node's addresses on it.

The bridge plugin could do that for one IPv4 gateway only, so it is not asked to. What the bridge should have is decided in
`core.pool.bridge_gateways`; `gateways` carries it out on the port `Bridge`, whose adapter for Linux is `netlink_bridge`.
"""
