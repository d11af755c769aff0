"""Whole clusters in one process on virtual time: the production programs, with pretend kubelets, disks and API server.

    nodes/        machines: kubelet, container runtime, agents
    checks/       the invariants, followed change by change
    world/        a cluster, or several on one allocator
    faults/       what can go wrong, a file each
    run/          a fault plan carried out: trouble, rest, verdict
    scenario/     stories from YAML files
    replay/       traces of pods, and stories, by several strategies
    demo/         `podtide demo`

Start with `run/simulate.py`.
"""
