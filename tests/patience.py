"""How long a test waits for what another process or a server does.

Only what is broken takes so long, on however busy a machine: no test is about this time, and none passes or fails by it.
"""

PATIENCE_SECONDS = 300.0
