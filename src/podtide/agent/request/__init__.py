"""The node's NodeNetworkConfig in both directions: the request in its spec, and the grants in its status.

Start with `target` (how many), `requester` (the write) and `config_follower` (from the status into the pool).
"""
