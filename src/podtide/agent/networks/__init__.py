"""Addresses of secondary networks on this node: each ADD and DEL is a write to an IPPool, shared or the node's own.

What to give, reserve and write is decided by `core.networks.round`, what to put back after a restore of etcd by
`core.networks.restoration`; here it is read and written. Start with `secondary_networks`, then `pool_loop`.
"""
