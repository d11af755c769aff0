"""What the node asks the controller for, and what it was given: its NodeNetworkConfig in both directions.

Start with `target` (how many), `requester` (the write) and `config_follower` (the way back into the pool).
"""
