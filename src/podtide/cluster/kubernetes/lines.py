"""A stream of bytes as lines of any length."""


class LineSplitter:
    """Takes bytes as they come and gives the lines that are whole.

    A line may be megabytes long and come in a thousand pieces, so the pieces are joined once, at its end.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    @property
    def is_within_a_line(self) -> bool:
        """Whether the last line has not ended yet."""
        return bool(self._pieces)

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that these bytes complete, without their ends; empty lines are left out."""
        first, *others = data.split(b"\n")
        if not others:
            if first:
                self._pieces.append(first)
            return []
        *whole, last = others
        lines = [b"".join((*self._pieces, first)), *whole]
        self._pieces = [last] if last else []
        return [line for line in lines if line]
