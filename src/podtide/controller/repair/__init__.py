"""Leak repair: what secondary networks hold for pods that are gone is freed, and reservations are brought in step with pools.

Start with `repair_loop`; what counts as a leak is decided in `core.networks.leaks`.
"""
