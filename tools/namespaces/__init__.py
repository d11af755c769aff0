"""Network namespaces of this machine, for tests: `namespace` makes them, `relay` carries connections between them.

`janitor` removes them when the process that made them is gone.
"""
