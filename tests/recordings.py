"""What other programs answered, recorded in tests/recorded (its README.md says how), for tests that compare with it."""

import json
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "recorded"


def whereabouts(section: str) -> Any:
    """One section of what Whereabouts 0.9.4 answered, read anew: a test may change what it gets."""
    return json.loads((RECORDED / "whereabouts.json").read_text())[section]


def cns_targets() -> list[Any]:
    """The targets that Azure CNS computed: demand, batch, buffer, target, and the target by three maxima."""
    return list(json.loads((RECORDED / "cns_targets.json").read_text())["rows"])
