"""Nodes: from a Node to its NodeNetworkConfig and network containers, and back when the Node is deleted.

node_reconciler      creates and deletes the NodeNetworkConfig and the containers; start here
request_reconciler   what a node asks for: one wish to the allocator, one status
retirement, sweep    which deleted Nodes may be retired, and how they are found at the start of a term
quarantine           addresses that deleted Nodes left
recovery_report      what this cluster holds, for an allocator whose database was restored
"""
