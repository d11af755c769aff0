"""Break the scaling and exhaustion code in every small way, one at a time, and report what no test noticed.

mutmut makes the mutants and runs the tests that reach each of them (pyproject.toml, `[tool.mutmut]`, says which files).
It always ends well, so the score is judged here: any mutant that was not killed fails the target. Everything is run
anew each time, because a cached verdict does not know that a test has changed since.
"""

import json
import shutil
import sys
from pathlib import Path

from mutmut.__main__ import cli as mutmut

MUTANTS = Path("mutants")


def run() -> int:
    """Run every mutant and print the score; the answer is the exit status."""
    shutil.rmtree(MUTANTS, ignore_errors=True)
    for command in ("run", "results", "export-cicd-stats"):
        mutmut([command], standalone_mode=False)
    stats = json.loads((MUTANTS / "mutmut-cicd-stats.json").read_text())
    killed, total = stats["killed"], stats["total"]
    print(f"{killed} of {total} mutants killed")
    if killed == total:
        return 0
    print(f"look at a survivor with: {Path(sys.executable).with_name('mutmut')} show NAME", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(run())
