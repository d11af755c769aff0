"""The release workflow: nothing in it can be exchanged behind our back, and each job may do only its own part.

It is read as text, and what makes krew's files is run as it stands there.
"""

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from repository_files import ROOT

FILE = ROOT / ".github" / "workflows" / "release.yaml"
WORKFLOW: dict[Any, Any] = yaml.safe_load(FILE.read_text())
JOBS: dict[str, dict[str, Any]] = WORKFLOW["jobs"]
STEPS = [(job, step) for job, content in JOBS.items() for step in content["steps"]]

MAKEFILE_TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))


def test_it_is_started_by_the_tag_of_a_release_and_by_nothing_else() -> None:
    assert WORKFLOW[True] == {"push": {"tags": ["v*"]}}  # YAML 1.1 reads the key `on` as true


def test_by_default_a_job_may_do_nothing() -> None:
    assert WORKFLOW["permissions"] == {}


@pytest.mark.parametrize("job", JOBS)
def test_a_job_may_do_what_its_steps_need_and_no_more(job: str) -> None:
    actions = {step.get("uses", "").partition("@")[0] for step in JOBS[job]["steps"]}
    needed = {"contents": "read"} if "actions/checkout" in actions else {}
    if any(action.startswith("actions/attest") for action in actions):
        needed |= {"attestations": "write", "id-token": "write"}
    if any("gh release" in step.get("run", "") for step in JOBS[job]["steps"]):
        needed["contents"] = "write"
    if "pypa/gh-action-pypi-publish" in actions:
        needed["id-token"] = "write"
    if any(re.search(r"docker|helm push", step.get("run", "")) for step in JOBS[job]["steps"]):
        needed["packages"] = "write"
    assert JOBS[job]["permissions"] == needed


@pytest.mark.parametrize("step", [step for _, step in STEPS if "uses" in step], ids=lambda step: step["uses"])
def test_an_action_is_pinned_by_its_commit(step: dict[str, Any]) -> None:
    assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", step["uses"])


def test_checking_out_leaves_no_token_behind() -> None:
    checkouts = [step for _, step in STEPS if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_no_shell_reads_what_an_event_says_as_code() -> None:
    scripts = [step["run"] for _, step in STEPS if "run" in step]
    assert [script for script in scripts if "${{" in script] == []


def test_it_names_no_registry_but_by_variables() -> None:
    assert re.findall(r"\b(?:[\w-]+\.)+(?:io|org|com|dev|net)\b", FILE.read_text()) == []


def test_a_release_is_checked_built_listed_attested_and_published() -> None:
    done = "\n".join(step.get("run", "") + step.get("uses", "") for _, step in STEPS)
    for part in (
        ".ci/run",
        "uv build",
        "bill_of_materials",
        "krew_release",
        "actions/attest",
        "docker buildx build",
        "helm package",
    ):
        assert part in done


def test_nothing_is_published_before_all_tests_have_passed() -> None:
    def before(job: str) -> set[str]:
        needs = JOBS[job].get("needs", [])
        direct = {needs} if isinstance(needs, str) else set(needs)
        return direct.union(*(before(each) for each in direct))

    assert all("test" in before(job) for job in JOBS if job != "test")


def test_every_make_target_that_it_runs_exists() -> None:
    scripts = " ".join(step.get("run", "") for _, step in STEPS)
    assert set(re.findall(r"\bmake ([a-z-]+)", scripts)) <= MAKEFILE_TARGETS


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SOURCE = PROJECT["urls"]["Source"]
SERVER, OWNER, NAME = SOURCE.rsplit("/", 2)
TAG = "v1.2.3"


def run_step(words: str, directory: Path, repository: str) -> subprocess.CompletedProcess[str]:
    """The step whose script has the words, as a runner starts it: in a checkout, with what tells of the repository."""
    (script,) = (step["run"] for _, step in STEPS if words in step.get("run", ""))
    told = {"GITHUB_REF_NAME": TAG, "GITHUB_SERVER_URL": SERVER, "GITHUB_REPOSITORY": repository}
    return subprocess.run(
        ["/bin/bash", "-e", "-c", script],
        cwd=directory,
        env={"PATH": os.environ["PATH"], **told},
        check=False,
        capture_output=True,
        text=True,
    )


def checkout(directory: Path) -> Path:
    """A directory with what the steps read: .venv, and what belongs to the repository."""
    (directory / ".venv").symlink_to(Path(sys.prefix))
    for name in ("tools", "deploy", "LICENSE"):
        (directory / name).symlink_to(ROOT / name)
    (directory / "pyproject.toml").write_text(
        re.sub(r'(?m)^version = ".*"', f'version = "{TAG[1:]}"', (ROOT / "pyproject.toml").read_text())
    )
    return directory


@pytest.fixture
def krew(tmp_path: Path) -> Path:
    """What the workflow's own step makes for krew."""
    done = run_step("krew_release", checkout(tmp_path), f"{OWNER}/{NAME}")
    assert done.returncode == 0, done.stderr
    return tmp_path / "krew"


def test_krews_manifest_has_the_digest_of_the_archive_that_the_same_step_made(krew: Path) -> None:
    text = (krew / "podtide.yaml").read_text()
    assert "$" not in text
    manifest = yaml.safe_load(text)
    assert (manifest["kind"], manifest["metadata"]["name"]) == ("Plugin", "podtide")
    assert manifest["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2"
    spec = manifest["spec"]
    assert (spec["version"], spec["homepage"]) == (TAG, SOURCE)
    assert len(spec["shortDescription"]) <= 50
    (platform,) = spec["platforms"]
    archive = krew / "kubectl-podtide.tar.gz"
    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert platform["uri"] == f"{SOURCE}/releases/download/{TAG}/{archive.name}"
    with tarfile.open(archive) as content:
        assert {each["from"] for each in platform["files"]} == set(content.getnames())
    assert platform["bin"] in {each["from"] for each in platform["files"]}


def test_what_krew_unpacks_runs_podtide(krew: Path, tmp_path: Path) -> None:
    with tarfile.open(krew / "kubectl-podtide.tar.gz") as content:
        content.extractall(tmp_path / "store", filter="data")
    run = subprocess.run(
        [tmp_path / "store" / "kubectl-podtide", "subnet", "-h"],
        env={**os.environ, "PODTIDE_PYTHON": sys.executable},
        check=True,
        capture_output=True,
        text=True,
    )
    assert run.stdout.startswith("Usage: kubectl podtide subnet ")


def test_the_release_carries_krews_files_and_the_archive_is_attested() -> None:
    of_distributions = [step["with"] for job, step in STEPS if job == "distributions" and "with" in step]
    assert {"name": "krew", "path": "krew/*"} in of_distributions
    attested = [
        each["subject-path"]
        for each in of_distributions
        if "sbom-path" not in each and "subject-path" in each
    ]
    assert "krew/kubectl-podtide.tar.gz" in "".join(attested).splitlines()


@pytest.mark.parametrize(("repository", "is_released"), [(f"{OWNER}/{NAME}", True), ("somebody/fork", False)])
def test_only_the_repository_that_the_package_names_can_release_it(
    tmp_path: Path, repository: str, is_released: bool
) -> None:
    there = checkout(tmp_path)
    (there / "deploy").unlink()
    (there / "deploy" / "chart").mkdir(parents=True)
    (there / "deploy" / "chart" / "Chart.yaml").write_text(f"appVersion: {TAG[1:]}\n")
    assert (run_step('GITHUB_REF_NAME" = ', there, repository).returncode == 0) is is_released


def test_package_and_chart_name_one_repository() -> None:
    chart = yaml.safe_load((ROOT / "deploy" / "chart" / "Chart.yaml").read_text())
    assert (chart["home"], chart["sources"]) == (SOURCE, [SOURCE])
    assert all(url.startswith(SOURCE) for url in PROJECT["urls"].values())
    assert {"Source", "Documentation", "Changelog", "Issues"} <= set(PROJECT["urls"])
