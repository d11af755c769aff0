"""The allocator over HTTP, for clusters that share subnets and for several replicas on one database."""
