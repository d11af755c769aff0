"""The node's pool with its journal on disk, its recovery when the journal is lost, and the leak collector.

The states of an address and their transitions are in `core.pool`. Start with `journaled_pool`.
"""
