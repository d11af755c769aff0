"""The Dockerfile, as far as it can be judged without building it."""

import re
import shlex
from pathlib import Path

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
