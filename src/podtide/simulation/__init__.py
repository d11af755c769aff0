"""Whole clusters in one process: the production programs, put together, with a pretend kubelet to drive them."""
