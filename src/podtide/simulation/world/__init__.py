"""A simulated cluster put together: the embedded API server, the allocator, controllers and nodes. Start with `world`."""
