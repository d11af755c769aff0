"""podtide: pod IP addresses for Kubernetes clusters whose subnets are scarce."""

__version__ = "0.1.0.dev0"
