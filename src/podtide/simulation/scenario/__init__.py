"""Scenario files: a cluster, what happens in it and what must follow, in plain words."""
