"""`podtide forecast`: when subnets reach their thresholds and their capacity, by an allocator's history or by a file.

What is decided is in `core.forecast.usage_forecast`. Start with `command`.
"""
