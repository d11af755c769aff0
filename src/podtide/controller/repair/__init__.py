"""Leak repair: frees what secondary networks hold for pods that no longer exist, and aligns reservations with pools.

Start with `repair_loop`; what counts as a leak is decided in `core.networks.leaks`.
"""
