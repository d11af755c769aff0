"""The node's pool, kept in a journal on disk; how it is recovered without one, and what sandboxes leaked.

What may happen to an address is decided in `core.pool`. Start with `journaled_pool`.
"""
