"""Scenario files: a cluster, what happens in it and what must come of that, in words that need no manual."""
