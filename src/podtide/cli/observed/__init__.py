"""Nodes and secondary networks as the cluster's objects show them, read once for all commands that count them."""
