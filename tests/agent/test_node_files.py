"""An agent's files are removed from its node, and nothing else."""

from pathlib import Path

import pytest

from podtide.agent.node_files import remove_socket, remove_state
from podtide.runtime.directory_disk import DirectoryDisk
from podtide.runtime.disk import Locked, NotPermitted

STATE = ("agent.journal", "agent.journal.damaged", "networks.journal", ".agent.journal.new", "agent.lock")


def state(directory: Path) -> Path:
    directory.mkdir()
    for name in STATE:
        (directory / name).touch()
    return directory


def test_journals_and_lock_go_and_their_directory(tmp_path: Path) -> None:
    directory = state(tmp_path / "podtide")
    assert set(remove_state(directory)) == {*(directory / name for name in STATE), directory}
    assert not directory.exists()


def test_records_without_a_lock_go_too(tmp_path: Path) -> None:
    directory = tmp_path / "podtide"
    directory.mkdir()
    (directory / "agent.journal").touch()
    assert list(remove_state(directory)) == [directory / "agent.journal", directory]


def test_what_is_anothers_stays_with_its_directory(tmp_path: Path) -> None:
    directory = state(tmp_path / "podtide")
    (directory / "subnets.db").touch()
    list(remove_state(directory))
    assert list(directory.iterdir()) == [directory / "subnets.db"]


def test_nothing_goes_while_an_agent_runs(tmp_path: Path) -> None:
    directory = state(tmp_path / "podtide")
    with DirectoryDisk(directory).lock("agent.lock"), pytest.raises(Locked):
        list(remove_state(directory))
    assert {path.name for path in directory.iterdir()} == set(STATE)


def test_socket_and_notes_go_and_their_directories(tmp_path: Path) -> None:
    directory = tmp_path / "podtide"
    notes = directory / "deleted"
    notes.mkdir(parents=True)
    for path in (directory / "agent.sock", notes / "sandbox@eth0"):
        path.touch()
    assert list(remove_socket(directory)) == [
        notes / "sandbox@eth0",
        notes,
        directory / "agent.sock",
        directory,
    ]
    assert not directory.exists()


def test_a_socket_alone_goes_too(tmp_path: Path) -> None:
    directory = tmp_path / "podtide"
    directory.mkdir()
    (directory / "agent.sock").touch()
    assert list(remove_socket(directory)) == [directory / "agent.sock", directory]


def test_where_there_is_no_directory_none_is_made(tmp_path: Path) -> None:
    assert [*remove_state(tmp_path / "a"), *remove_socket(tmp_path / "b")] == []
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_removed_is_said(tmp_path: Path) -> None:
    (tmp_path / "agent.sock").mkdir()
    with pytest.raises(
        NotPermitted, match=r"cannot remove .*agent\.sock: is a directory; run as root, or remove it by hand"
    ):
        list(remove_socket(tmp_path))
