"""`python -m podtide` is `podtide`."""

from podtide.cli import main

main()
