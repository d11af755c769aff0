"""`podtide subnet`: the subnets an allocator owns. Start with `command`."""
