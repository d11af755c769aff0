"""One run of a fault plan: drawn from a seed, carried out, settled, judged, and made smaller where it failed.

Start with `simulate`; `fault_plan` is what is drawn.
"""
