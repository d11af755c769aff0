"""What the nodes of a subnet share: how much each asks for, which batch is in force, who is served, what rests.

Pure. Start with `scaling`, the request of one node; then `batch`, the decision for all of them, and `grants`.
"""
