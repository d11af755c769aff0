"""Secondary networks: which node has which slice, who holds which address of a range, and what leaked.

Pure, and independent of node pools and subnets. Start with `slices` and `allocations`.
"""
