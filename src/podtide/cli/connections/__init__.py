"""How a command reaches what it asks: a cluster, an allocator, or an allocator beside a cluster."""
