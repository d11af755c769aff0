"""Secondary networks on a node: addresses from ranges that the cluster keeps, in a pool of the node's own or a shared one."""
