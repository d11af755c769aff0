"""A node's machine in a simulated cluster: its kubelet, container runtime and agents. Start with `kubelet`."""
