"""The Dockerfile, as far as it can be judged without building it, and the image that it makes."""

import json
import os
import re
import shlex
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from msgspec import Struct

from container_images.podtide_image import podtide_image
from control_plane.errors import CannotBuild
from left_out import leave_out
from manifests import CHART
from podtide import __version__

ROOT = Path(__file__).parent.parent.parent
DOCKERFILE = ROOT / "deploy" / "Dockerfile"


def instructions() -> list[list[str]]:
    """Each instruction with its words."""
    text = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE))
    return [
        shlex.split(line) if line.startswith("COPY") else line.split() for line in text.splitlines() if line
    ]


def ignored() -> list[str]:
    return (ROOT / "deploy" / "Dockerfile.dockerignore").read_text().splitlines()


def test_its_stages_begin_with_plain_images() -> None:
    bases = [words[1] for words in instructions() if words[0] == "FROM"]
    assert len(bases) == 3
    for base in bases:
        assert re.fullmatch(r"[a-z]+:[\w.-]+", base), "no registry is named: that is the builder's to choose"


def test_what_it_copies_from_the_repository_is_there_and_let_in() -> None:
    copies = [words[1:-1] for words in instructions() if words[0] == "COPY" and "--from=" not in words[1]]
    sources = [source for words in copies for source in words]
    assert "requirements.lock" in sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert f"!{source.split('/')[0]}" in ignored(), source


def test_what_comes_from_an_earlier_stage_was_made_in_one() -> None:
    stages = {words[3] for words in instructions() if words[0] == "FROM" and len(words) > 2}
    copied = [words[1] for words in instructions() if words[0] == "COPY" and words[1].startswith("--from=")]
    assert {stage.removeprefix("--from=") for stage in copied} == stages


def test_it_runs_podtide_as_nobody_and_knows_its_plugin() -> None:
    last = instructions()[-4:]
    assert ["USER", "65532:65532"] in last
    assert ["ENTRYPOINT", '["podtide"]'] in last
    (plugin,) = re.findall(r"COPY --from=plugin \S+ (\S+)", DOCKERFILE.read_text())
    assert f"PODTIDE_PLUGIN={plugin}" in DOCKERFILE.read_text()


class UnpackedImage(Struct, frozen=True):
    """An image's root file system, and what a runtime is told to run in it."""

    root: Path
    tags: list[str]
    user: str
    entrypoint: list[str]
    env: list[str]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it as a container runtime would, as far as files, user and environment go."""
        return self.execute(*self.entrypoint, *arguments)

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run another program in it."""
        return subprocess.run(
            ["chroot", f"--userspec={self.user}", self.root, "/usr/bin/env", "-i", *self.env, *command],  # noqa: S607 - the machine's own
            check=False,
            capture_output=True,
            text=True,
        )


def unpacked(archive: Path, root: Path) -> UnpackedImage:
    """From the archive's own manifest; a layer is unpacked over those below it."""
    with tarfile.open(archive) as parts:
        (image,) = json.load(parts.extractfile("manifest.json") or pytest.fail("no manifest"))
        config = json.load(parts.extractfile(image["Config"]) or pytest.fail("no config"))["config"]
        for layer in image["Layers"]:
            parts.extract(layer, root.parent, filter="data")
            subprocess.run(["tar", "-x", "-f", root.parent / layer, "-C", root], check=True)  # noqa: S607 - the machine's own
            (root.parent / layer).unlink()
    return UnpackedImage(root, image["RepoTags"], config["User"], config["Entrypoint"], config["Env"])


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[UnpackedImage]:
    """The image of the repository as it is, built if it is not there."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    directory = tmp_path_factory.mktemp("image")
    directory.chmod(0o755)
    root = directory / "root"
    root.mkdir()
    try:
        with capture.global_and_fixture_disabled():  # building takes minutes: let its progress be seen
            archive = podtide_image()
    except CannotBuild as reason:
        leave_out("container image", reason)
    yield unpacked(archive, root)
    shutil.rmtree(root)


@pytest.mark.slow
def test_the_image_has_the_name_that_the_chart_asks_for(image: UnpackedImage) -> None:
    assert [tag.removeprefix("docker.io/library/") for tag in image.tags] == [f"podtide:{__version__}"]


@pytest.mark.slow
def test_the_image_runs_podtide_as_nobody(image: UnpackedImage) -> None:
    assert image.run("--version").stdout.split()[-1] == __version__
    assert image.execute("id", "-u").stdout.strip() == "65532"
    assert image.execute("id", "-g").stdout.strip() == "65532"


@pytest.mark.slow
def test_the_image_prints_the_crds_of_this_repository(image: UnpackedImage) -> None:
    printed = list(yaml.safe_load_all(image.run("crds").stdout))
    kept = [yaml.safe_load(path.read_text()) for path in (ROOT / "deploy" / "chart" / "crds").iterdir()]
    assert [crd for crd in kept if crd not in printed] == []


@pytest.mark.slow
def test_the_plugin_in_the_image_needs_nothing_of_its_node(image: UnpackedImage, tmp_path: Path) -> None:
    inside = dict(entry.split("=", 1) for entry in image.env)["PODTIDE_PLUGIN"]
    shutil.copy(image.root / inside.lstrip("/"), tmp_path / "podtide")
    answer = subprocess.run(
        ["chroot", tmp_path, "/podtide"],  # noqa: S607 - the machine's own
        check=True,
        capture_output=True,
        text=True,
        env={"CNI_COMMAND": "VERSION", "PATH": os.environ["PATH"]},
        input='{"cniVersion": "1.0.0"}',
    )
    assert "1.0.0" in json.loads(answer.stdout)["supportedVersions"]


@pytest.mark.parametrize("page", ["README.md", "docs/installing.md", "deploy/Dockerfile"])
def test_the_image_is_built_under_the_tag_that_the_chart_asks_for(page: str) -> None:
    repository = yaml.safe_load((CHART / "values.yaml").read_text())["image"]["repository"]
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    built = re.findall(r"docker build .*?--tag (\S+)", (ROOT / page).read_text())
    assert [name.removeprefix("images.example.org/") for name in built] == [f"{repository}:{version}"]


def test_the_manual_names_the_image_of_the_plain_manifests() -> None:
    manifests = yaml.safe_load_all((CHART.parent / "manifests" / "podtide.yaml").read_text())
    pods = [
        each["spec"]["template"]["spec"] for each in manifests if each and "template" in each.get("spec", {})
    ]
    (image,) = {container["image"] for pod in pods for container in pod["containers"]}
    assert f"image `{image}`" in (ROOT / "docs" / "installing.md").read_text()
