import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
import threading
from pathlib import Path
from typing import Any

import pytest

from container_images import debian
from container_images.cache import Turn, images_directory, made
from container_images.context import (
    DOCKERFILE,
    ROOT,
    SourcesChanged,
    copy_sources,
    source_files,
    sources_hash,
)
from container_images.debian import check_machine
from container_images.earlier_sources import earlier_sources
from container_images.mirrors import pip_configuration, pip_settings, uv_configuration
from container_images.oci import write_archive
from container_images.podtide_image import podtide_name
from container_images.workshop import BASE_IMAGES
from control_plane.errors import CannotBuild
from podtide import __version__


def quiet(_: str) -> None: ...


class Archive:
    """An image's archive, to look into."""

    def __init__(self, path: Path) -> None:
        with tarfile.open(path) as archive:
            self.content = {entry.name: _read(archive, entry) for entry in archive}

    def json(self, path: str) -> Any:
        return json.loads(self.content[path])

    def blob(self, descriptor: dict[str, Any]) -> bytes:
        content = self.content[f"blobs/{descriptor['digest'].replace(':', '/')}"]
        assert len(content) == descriptor["size"]
        return content


def _read(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    content = archive.extractfile(entry)
    assert content
    return content.read()


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    with tarfile.open(tmp_path / "layer.tar", "w") as layer:
        entry = tarfile.TarInfo("hello")
        entry.size = 5
        layer.addfile(entry, io.BytesIO(b"world"))
    write_archive(tmp_path / "layer.tar", tmp_path / "image.tar", "localhost/hello:1", command=["/hello"])
    return Archive(tmp_path / "image.tar")


def test_every_blob_of_an_image_is_named_by_its_digest(archive: Archive) -> None:
    blobs = {name.rpartition("/")[2]: text for name, text in archive.content.items() if "blobs/" in name}
    assert len(blobs) == 3
    assert all(hashlib.sha256(content).hexdigest() == name for name, content in blobs.items())


def test_an_image_is_found_from_its_index(archive: Archive, tmp_path: Path) -> None:
    assert archive.json("oci-layout") == {"imageLayoutVersion": "1.0.0"}
    (listed,) = archive.json("index.json")["manifests"]
    manifest = json.loads(archive.blob(listed))
    assert listed["mediaType"] == manifest["mediaType"]
    (layer,) = manifest["layers"]
    assert archive.blob(layer) == (tmp_path / "layer.tar").read_bytes()
    config = json.loads(archive.blob(manifest["config"]))
    assert config["rootfs"]["diff_ids"] == [layer["digest"]]
    assert len(config["history"]) == 1, "buildah builds on no image whose history lacks a layer"
    assert config["config"]["Cmd"] == ["/hello"]


def test_an_image_has_its_full_name_for_containerd_and_for_others(archive: Archive) -> None:
    (listed,) = archive.json("index.json")["manifests"]
    assert set(listed["annotations"].values()) == {"localhost/hello:1"}
    assert "io.containerd.image.name" in listed["annotations"]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("repository")
    copy_sources(copy, expected=sources_hash())
    return copy


@pytest.mark.parametrize(
    "path",
    [
        *("deploy/Dockerfile", "deploy/Dockerfile.dockerignore", "requirements.lock", "pyproject.toml"),
        *("README.md", "src/podtide/__init__.py", "plugin/src/main.rs", "plugin/.cargo/config.toml"),
    ],
)
def test_an_edit_of_what_goes_into_the_image_is_another_image(repository: Path, path: str) -> None:
    before, content = sources_hash(repository), (repository / path).read_bytes()
    (repository / path).write_bytes(content + b"#\n")
    after = sources_hash(repository)
    (repository / path).write_bytes(content)
    assert after != before == sources_hash(repository)


def test_a_new_file_and_a_new_mode_are_another_image(repository: Path) -> None:
    before, file = sources_hash(repository), repository / "src" / "podtide" / "new.py"
    file.touch()
    with_file = sources_hash(repository)
    file.chmod(0o755)
    executable = sources_hash(repository)
    file.unlink()
    assert len({before, with_file, executable}) == 3


@pytest.mark.parametrize(
    "path", ["docs/new.md", "plugin/target/release/podtide", "src/podtide/__pycache__/new.pyc"]
)
def test_what_does_not_go_into_the_image_changes_nothing(repository: Path, path: str) -> None:
    before = sources_hash(repository)
    (repository / path).parent.mkdir(parents=True)
    (repository / path).touch()
    assert sources_hash(repository) == before
    shutil.rmtree((repository / path).parent)


def test_all_that_the_dockerfile_copies_is_among_the_sources() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / DOCKERFILE).read_text(), flags=re.MULTILINE)
    for source in " ".join(copied).split():
        inside = [path for path in source_files() if path.is_relative_to(source.rstrip("/"))]
        assert inside, source


def test_an_edit_between_hashing_and_building_is_noticed(repository: Path, tmp_path: Path) -> None:
    before = sources_hash(repository)
    added = repository / "src" / "podtide" / "late.py"
    added.touch()
    with pytest.raises(SourcesChanged):
        copy_sources(tmp_path, expected=before, root=repository)
    added.unlink()


def test_a_base_image_is_made_for_every_stage_of_the_dockerfile() -> None:
    bases = re.findall(r"^FROM (\S+)", (ROOT / DOCKERFILE).read_text(), flags=re.MULTILINE)
    assert {f"docker.io/library/{base}" for base in bases} == set(BASE_IMAGES)


def test_the_image_has_the_name_that_a_kubelet_looks_for() -> None:
    assert podtide_name() == f"docker.io/library/podtide:{__version__}"
    assert podtide_name("earlier") == "docker.io/library/podtide:earlier"


def test_a_build_is_told_of_the_machine_s_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "https://me:it's@mirror.example/simple")
    settings = pip_settings()
    assert "index-url = https://me:it's@mirror.example/simple\n" in pip_configuration(settings)
    assert 'index-url = "https://me:it\'s@mirror.example/simple"\n' in uv_configuration(settings)


def test_without_a_mirror_a_build_is_told_of_none() -> None:
    assert "index" not in pip_configuration({"default-timeout": "180"})
    assert "default-timeout = 180" in pip_configuration({"default-timeout": "180"})


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("container_images.cache.check_machine", lambda: None)
    return images_directory()


def test_images_are_kept_beside_the_control_plane_s_programs(cache: Path, tmp_path: Path) -> None:
    assert cache == tmp_path / "podtide" / "container-images"


@pytest.fixture
def two_commits(tmp_path: Path) -> tuple[Path, str]:
    """A repository, and the first of its commits."""
    root = tmp_path / "clone"
    root.mkdir()

    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        done = subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True, text=True)  # noqa: S607 - this machine's git
        return done.stdout.strip()

    git("init", "--quiet")
    for content in ("earlier", "later"):
        (root / "file").write_text(content)
        git("add", "file")
        git("commit", "--quiet", "--message", content)
    return root, git("rev-parse", "HEAD~")


@pytest.mark.usefixtures("cache")
def test_the_files_of_an_earlier_commit_are_as_it_had_them(two_commits: tuple[Path, str]) -> None:
    root, commit = two_commits
    assert (earlier_sources(quiet, commit, root) / "file").read_text() == "earlier"
    assert (root / "file").read_text() == "later"


def test_a_clone_that_lacks_the_earlier_commit_is_told_of(cache: Path, two_commits: tuple[Path, str]) -> None:
    root, _ = two_commits
    with pytest.raises(CannotBuild, match=r"has no commit 1234567, .*git fetch --unshallow"):
        earlier_sources(quiet, "1234567" * 5 + "12345", root)
    assert [path.name for path in cache.iterdir()] == ["lock"]


def test_half_a_file_never_appears_and_a_failure_leaves_nothing(cache: Path) -> None:
    def fail(turn: Turn, unfinished: Path) -> None:
        unfinished.write_text("half")
        assert turn.partial in unfinished.parents
        assert not (cache / "image").exists()
        raise CannotBuild("no more disk")

    with pytest.raises(CannotBuild, match="no more disk"):
        made("image", quiet, fail)
    assert [path.name for path in cache.iterdir()] == ["lock"]


def test_what_a_killed_build_left_is_thrown_away(cache: Path) -> None:
    (cache / "partial").mkdir(parents=True)
    (cache / "partial" / "image").write_text("half")

    def make(turn: Turn, unfinished: Path) -> None:
        assert list(turn.partial.iterdir()) == []
        unfinished.write_text("whole")

    assert made("image", quiet, make).read_text() == "whole"
    assert not (cache / "partial").exists()


def test_several_who_ask_at_once_make_it_once(cache: Path) -> None:
    waiting = threading.Semaphore(0)
    turns: list[Path] = []

    def make(turn: Turn, unfinished: Path) -> None:
        turns.append(turn.cache)
        if len(turns) == 1:
            for _ in range(3):
                waiting.acquire()
        unfinished.touch()

    def say(line: str) -> None:
        assert line == "another process is building it: waiting"
        waiting.release()

    threads = [threading.Thread(target=made, args=("image", say, make)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert turns == [cache]


def test_only_root_builds_images(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "os-release").write_text("ID=debian\nVERSION_CODENAME=bookworm\n")
    monkeypatch.setattr("os.getuid", lambda: 1000)
    with pytest.raises(CannotBuild, match=r"are built by root on Debian 12: run this as root"):
        check_machine(tmp_path / "os-release")


@pytest.mark.parametrize("text", [None, "ID=fedora\n", "ID=debian\nVERSION_CODENAME=trixie\n"])
def test_images_are_built_on_no_other_system(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "os-release").write_text(text)
    with pytest.raises(CannotBuild, match=r"are built by root on Debian 12, .*: this is another system$"):
        check_machine(tmp_path / "os-release")


def test_a_program_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "os-release").write_text("VERSION_CODENAME=bookworm\n")
    monkeypatch.setattr("os.getuid", lambda: 0)
    monkeypatch.setattr(debian, "PROGRAMS", ("sh", "no-such-program"))
    with pytest.raises(CannotBuild, match=r"which lacks no-such-program here"):
        check_machine(tmp_path / "os-release")
