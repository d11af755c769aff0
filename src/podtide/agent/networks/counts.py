"""How often an agent wrote the pools of secondary networks, for metrics."""


class Counts:
    """Counters since the start of the agent."""

    def __init__(self) -> None:
        self.writes = 0
        self.conflicts = 0
        self.retries = 0
