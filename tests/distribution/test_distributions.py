"""What a release publishes is whole: installed into an empty environment, podtide needs nothing of its repository."""

import asyncio
import filecmp
import os
import subprocess
import tarfile
from email.parser import Parser
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import pytest

from bill_of_materials import bill_of_materials
from cli.processes import running, served_cluster
from cli.test_agent import Place, join
from distribution.installed_podtide import Distributions, InstalledPodtide, build, install
from plugin.executables import ATTACHMENT, Plugin
from podtide import __version__
from repository_files import ROOT

pytestmark = pytest.mark.slow

LABORATORY = {"matplotlib", "numpy", "hypothesis", "pytest", "mkdocs"}
"""What only plots, tests and this documentation need."""


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    return build(tmp_path_factory.mktemp("distributions"))


@pytest.fixture(scope="module")
def installed(distributions: Distributions, tmp_path_factory: pytest.TempPathFactory) -> InstalledPodtide:
    return install(distributions.wheel, tmp_path_factory.mktemp("installed"))


def test_the_sdist_has_what_builds_and_explains_podtide(distributions: Distributions) -> None:
    with tarfile.open(distributions.sdist) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    for wanted in ("pyproject.toml", "LICENSE", "SECURITY.md", "plugin/podtide.py", "docs/installing.md"):
        assert wanted in names
    assert not {name for name in names if name.startswith((".venv", "plugin/target"))}


def test_the_wheel_says_what_podtide_is_and_who_it_is_for(distributions: Distributions) -> None:
    with ZipFile(distributions.wheel) as wheel:
        (metadata,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        stated = Parser().parsestr(wheel.read(metadata).decode())
    assert (stated["Name"], stated["Version"]) == ("podtide", __version__)
    assert stated["License-Expression"] == "Apache-2.0"
    assert "Operating System :: POSIX :: Linux" in (stated.get_all("Classifier") or [])
    urls = dict(each.split(", ") for each in stated.get_all("Project-URL") or [])
    assert urls["Source"].startswith("https://")
    assert {"Documentation", "Changelog", "Issues"} <= set(urls)


def test_the_wheel_carries_every_scenario_and_a_plugin_that_can_be_started(
    installed: InstalledPodtide,
) -> None:
    def scenarios(root: Path) -> set[Path]:
        return {path.relative_to(root) for path in (root / "scenarios").rglob("*.yaml")}

    assert scenarios(installed.package) == scenarios(ROOT)
    assert os.access(installed.package / "plugin" / "podtide.py", os.X_OK)


def test_installing_podtide_brings_nothing_that_only_the_laboratory_needs(
    installed: InstalledPodtide,
) -> None:
    packages = {path.name for path in installed.package.parent.iterdir()}
    assert packages & LABORATORY == set()


def test_the_bill_of_materials_lists_what_the_wheel_brings_and_the_lock_has_all_of_it(
    installed: InstalledPodtide,
) -> None:
    listed = bill_of_materials(installed.environment)
    assert listed["metadata"]["component"]["purl"] == f"pkg:pypi/podtide@{__version__}"
    lock = (ROOT / "requirements.lock").read_text()
    components = {f"{each['name']}=={each['version']}" for each in listed["components"]}
    assert [each for each in components if each not in lock] == []
    assert any(each.startswith("litestar==") for each in components)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--version",), __version__),
        (("demo", "--speed", "20", "--nodes", "4", "--plain"), "audit: clean"),
        (("simulate", "--scenario", "give-back"), "expectations met"),
        (("simulate", "--nodes", "2", "--minutes", "0.5"), "audit: clean"),
        (("explain", "request", "--demand", "25", "--batch", "16", "--buffer", "0.5"), "request 48 = "),
        (("plan", "--nodes", "50", "--pods-per-node", "30"), "/20"),
        (("plan", "replay", "--story", "one-burst", "--strategy", "adaptive"), "adaptive"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_command_works_outside_the_repository(
    installed: InstalledPodtide, arguments: tuple[str, ...], words: str
) -> None:
    answer = installed.run(*arguments)
    assert answer.returncode == 0, answer.stdout
    assert words in answer.stdout


def test_it_is_a_plugin_of_kubectl_with_completion(installed: InstalledPodtide) -> None:
    directory = installed.environment / "bin"
    asked = ["kubectl-podtide", "plan", "--nodes", "2", "--pods-per-node", "1"]
    answer = subprocess.run(
        [directory / asked[0], *asked[1:]],
        cwd=installed.directory,
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.startswith("at rest:")
    usage = subprocess.run([directory / asked[0], "top", "-h"], capture_output=True, text=True, check=True)
    assert usage.stdout.startswith("Usage: kubectl podtide top ")
    offered = subprocess.run(
        [directory / "kubectl_complete-podtide", "expl"], capture_output=True, text=True, check=True
    )
    assert "explain" in offered.stdout


@pytest.mark.real_time
async def test_its_agent_installs_the_plugin_that_came_along_and_a_pod_gets_an_address(
    installed: InstalledPodtide,
) -> None:
    with TemporaryDirectory() as name:  # pytest's own can be too long for a socket's path
        place, plugins = Place(Path(name)), Path(name) / "bin"
        async with (
            served_cluster(place.kubeconfig) as cluster,
            running(
                *place.options, "--cni-bin-directory", plugins, python=installed.python, PATH="/usr/bin:/bin"
            ) as agent,
        ):
            await agent.logged("listening")
            await join(cluster, "10.1.0.5")
            placed = Path((await agent.logged("installed"))["path"])
            assert placed == plugins / "podtide"
            assert filecmp.cmp(placed, installed.package / "plugin" / "podtide.py", shallow=False)
            added = await asyncio.to_thread(Plugin(placed, place.socket).run, "ADD", ATTACHMENT)
            assert (added.exit_status, added.document["ips"][0]["address"]) == (0, "10.1.0.5/24")
