"""`podtide explain`: every decision of the core with numbers from the command line, a module each.

Start with `command`.
"""
