"""What commands print: the formats of `-o`, tables that fit the screen, `--watch`, and commands for people to copy.

Start with `formats`.
"""
