"""List the packages of an environment as a bill of materials (CycloneDX, JSON), for a release.

    python tools/bill_of_materials.py ENVIRONMENT

What is installed is what counts: it names exactly what a wheel brings along, at the versions that were tested.
"""

import json
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

OWN = "podtide"


def bill_of_materials(environment: Path) -> dict[str, Any]:
    """Everything in the environment, and podtide itself as what the list is about."""
    packages = [str(path) for path in environment.glob("lib/python*/site-packages")]
    found = {_name(each): each for each in distributions(path=packages)}
    if OWN not in found:
        raise LookupError(f"podtide is not installed in {environment}: install its wheel there first")
    own = found.pop(OWN)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": _component(own) | {"type": "application"}},
        "components": [_component(found[name]) for name in sorted(found)],
    }


def _name(package: Distribution) -> str:
    return str(package.metadata["Name"]).lower().replace("_", "-").replace(".", "-")


def _component(package: Distribution) -> dict[str, Any]:
    purl = f"pkg:pypi/{_name(package)}@{package.version}"
    licences = package.metadata.get_all("License-Expression") or []
    return {
        "type": "library",
        "bom-ref": purl,
        "name": _name(package),
        "version": package.version,
        "purl": purl,
        "licenses": [{"expression": each} for each in licences],
    }


def main() -> None:
    """Print the list of the environment that the first argument names."""
    try:
        print(json.dumps(bill_of_materials(Path(sys.argv[1])), indent=2))
    except LookupError as error:  # an IndexError among them: no environment was named
        sys.exit(f"bill_of_materials: {error}")


if __name__ == "__main__":
    main()
