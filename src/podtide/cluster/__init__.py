"""The Cluster port, its adapters, and what stands on the port: informer, work queue, leader election."""
