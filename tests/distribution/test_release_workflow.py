"""The release workflow, read as text: nothing in it can be exchanged behind our back, and each job may do only its own part."""

import re
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
