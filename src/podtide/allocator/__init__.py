"""The owner of the subnets: which address is reserved for which node, in a database, for one cluster or for many."""
