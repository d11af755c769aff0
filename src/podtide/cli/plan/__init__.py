"""`podtide plan`: how many addresses a cluster will take, and whether they suffice, before it is so.

Start with `command`.
"""
