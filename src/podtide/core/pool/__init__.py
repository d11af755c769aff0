"""One node's addresses: which states they pass through, who holds them, and how many pods need one.

Pure, and independent of subnets and networks. Start with `states`, the table of transitions; `pool` is the machine that
follows it, `demand` the number of pods that need an address.
"""
