"""`podtide check`: the invariants, asked of a live cluster. Start with `command`."""
