"""Decisions, pure: no I/O, no clock, no asyncio. Everything that affects which address goes where is decided here.

    pool/       a node's addresses: their states, the demand for them, leaks, pacing
    subnet/     what is shared by nodes: scaling, exhaustion, the batch, grants, quarantine
    networks/   secondary networks: slices, allocations, reservations
    audit/      the invariants, checked at once and change by change
    forecast/   on which day a subnet runs out
    plan/       which subnet a cluster needs, and whether a rollout fits

The modules beside them are what all of these use: errors, exact numbers, ranges of addresses. Time is an argument everywhere.
Start with `pool/states.py` and `subnet/scaling.py`.
"""
