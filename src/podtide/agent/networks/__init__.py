"""Addresses of secondary networks on this node: each ADD and DEL is a write to an IPPool, shared or the node's own.

Start with `secondary_networks`; `committer` carries out what waits for one pool in one write.
"""
