"""A real Kubernetes control plane, for tests and for `make kube`.

`binaries` builds what tools/control-plane pins and keeps it in the user's cache, `cluster` starts it with certificates
of its own and podtide's CRDs installed, and `guardian` sees to it that nothing outlives the process that asked.
"""
