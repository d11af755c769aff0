"""Decisions, pure: no I/O, no clock, no asyncio.

Everything that affects which address goes where lives here, takes the time as an argument and
returns what to do, so that production, the planner and the fault tests run the very same lines.
"""
