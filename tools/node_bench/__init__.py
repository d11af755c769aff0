"""Real Kubernetes nodes on this machine: kubelet, containerd, runc and kube-proxy, in namespaces instead of virtual machines.

Start reading at `bench`, which puts all together. A node is a `machine` (namespaces, mounts, cgroups) on a `fabric` (the
network between nodes) with the processes of `node` on it, configured as `settings` says; `programs` finds or builds
what they run. `cleaning` removes everything when the process that asked for it is gone, however it ended.
"""
