"""The invariants: whether what every component says of the addresses fits together.

May read the types of `core.pool`, `core.subnet` and `core.networks`; nothing there knows of it. Start with `invariants`;
`incremental` checks the same one change at a time, `networks` the objects of secondary networks.
"""
