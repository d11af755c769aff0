"""`podtide allocator`: serve the subnets over HTTP, back up and restore their database, manage clusters. See `command`."""
