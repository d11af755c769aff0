"""`make manifests`: everything under deploy/ that is made from something else.

The CRDs come from podtide's own structs, the chart's README from its values.yaml, and the plain manifests are what Helm makes of
the chart with its defaults, for whoever has kubectl alone. A test holds them equal to what they are made from.
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from chart_readme import UndescribedValue, readme
from control_plane.errors import CannotBuild
from control_plane.go_toolchain import find_or_install_go
from helm_binary import helm, say_on_stderr
from podtide.resources.crds import crds

DEPLOY = Path(__file__).parent.parent / "deploy"
CHART = DEPLOY / "chart"
NAMESPACE = "kube-system"
OWN_SECRETS = (
    "--set=controller.allocator.tokenSecret=podtide-allocator-token",
    "--set=allocator.tokensSecret=podtide-allocator-tokens",
)
"""For plain manifests: tokens in a public file would be no secret, so whoever applies it makes them."""


def render(program: Path, *options: str) -> str:
    """What `helm template` makes of the chart with these options."""
    command = [
        str(program),
        "template",
        "podtide",
        str(CHART),
        "--skip-tests",
        "--namespace",
        NAMESPACE,
        *options,
    ]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def generated(program: Path) -> Mapping[Path, str]:
    """The files that are made, with what is to be in them."""
    definitions = {document["metadata"]["name"]: _yaml(document) for document in crds()}
    return {
        **{CHART / "crds" / f"{name}.yaml": text for name, text in definitions.items()},
        CHART / "README.md": readme(CHART),
        DEPLOY / "manifests" / "crds.yaml": "".join(f"---\n{text}" for text in definitions.values()),
        DEPLOY / "manifests" / "podtide.yaml": render(program, *OWN_SECRETS),
    }


def _yaml(document: object) -> str:
    return yaml.safe_dump(document, width=110, sort_keys=False)


if __name__ == "__main__":
    try:
        for path, text in generated(helm(find=find_or_install_go)).items():
            path.write_text(text)
    except (CannotBuild, UndescribedValue) as lack:
        say_on_stderr(str(lack))
        sys.exit(1)
    except subprocess.CalledProcessError as refusal:
        say_on_stderr(refusal.stderr.strip())
        sys.exit(1)
