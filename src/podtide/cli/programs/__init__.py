"""The commands that run until a signal stops them: agent, controller, allocator, cluster, dashboard, demo, wait.

`running` has what they share: settings, logs, signals. `health` is the port for probes of those that serve no other.
"""
