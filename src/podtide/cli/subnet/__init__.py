"""`podtide subnet`: the subnets an allocator owns, and how they were used.

`command` has the verbs, `growth` adds CIDRs, `history` shows the past with `usage_chart`.
"""
