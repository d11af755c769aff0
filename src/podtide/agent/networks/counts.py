"""What an agent did to the pools of secondary networks, for those who chart it."""


class Counts:
    """Only ever growing."""

    def __init__(self) -> None:
        self.writes = 0
        self.conflicts = 0
        self.retries = 0
