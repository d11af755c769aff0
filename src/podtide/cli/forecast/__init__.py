"""`podtide forecast`: when subnets reach their thresholds and their capacity, by an allocator's history or by a file.

What is decided is in `core.subnet.forecast`. Start with `command`.
"""
