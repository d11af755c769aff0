"""Where the scenario files are."""

from pathlib import Path

ROOT = Path(__file__).parents[3]
STORIES = sorted((ROOT / "scenarios" / "stories").iterdir())
TRAPS = sorted((ROOT / "scenarios" / "traps").iterdir())
FILES = [*STORIES, *TRAPS]
