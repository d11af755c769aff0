"""DELs that were left in notes: carried out once, before anything newer, and never a reason to fall over."""

import asyncio
import stat
from pathlib import Path

import pytest

from agent.calling import SANDBOX, Journal, answer_to, code, config, environment
from agent.pool_addresses import PoolAddresses
from podtide.agent.api.cni_calls import CniCalls
from podtide.agent.api.deletion_notes import DeletionNotes, StuckNote
from podtide.agent.api.plugin_protocol import Answer, encode_call
from podtide.core.errors import InvalidInput
from podtide.runtime.clock import LoopClock
from podtide.runtime.disk import DiskFull


class Node:
    """A pool whose addresses two sandboxes have, and the notes beside a socket."""

    def __init__(self, directory: Path) -> None:
        self.clock = LoopClock()
        self.addresses = PoolAddresses(self.clock)
        self.addresses.grant("10.1.0.5", "10.1.0.6", "10.1.0.7")
        self.journal = Journal()
        self.socket = directory / "run" / "agent.sock"
        self.notes = DeletionNotes.beside(self.socket, self.addresses, log=self.journal.log)
        self.directory = self.socket.parent / "deleted"
        self.calls = CniCalls(self.addresses, self.notes, clock=self.clock, log=self.journal.log)

    async def call(self, verb: str, sandbox: str = SANDBOX) -> Answer:
        """A call that reached the agent a second ago, and is looked at only now."""
        await asyncio.sleep(1)
        return await answer_to(
            self.calls, environment(verb, sandbox), config(), arrived=self.clock.monotonic() - 1
        )

    def leave(self, sandbox: str = SANDBOX, *, content: bytes | None = None, name: str = "") -> Path:
        """What the plugin does when nobody answers."""
        path = self.directory / (name or f"{sandbox}@eth0")
        path.write_bytes(encode_call(environment("DEL", sandbox), config()) if content is None else content)
        return path

    def left(self) -> list[str]:
        return sorted(note.name for note in self.directory.iterdir())


async def test_notes_are_carried_out_and_taken_away(tmp_path: Path) -> None:
    node = Node(tmp_path)
    for sandbox in ("a", "b", "c"):
        await node.call("ADD", sandbox)
    node.leave("a")
    node.leave("c")
    node.leave("never-seen")
    node.notes.carry_out_all()
    assert set(node.addresses.held()) == {("b", "eth0")}
    assert node.left() == []


async def test_notes_left_while_the_agent_runs_are_found_within_seconds(tmp_path: Path) -> None:
    node = Node(tmp_path)
    await node.call("ADD")
    looking = asyncio.create_task(node.notes.keep_carrying_out())
    node.leave()
    await asyncio.sleep(6)
    assert node.addresses.held() == {}
    looking.cancel()


async def test_an_old_del_does_not_undo_a_newer_add(tmp_path: Path) -> None:
    node = Node(tmp_path)
    await node.call("ADD")
    node.leave()
    assert (await node.call("ADD")).exit_status == 0
    node.notes.carry_out_all()
    assert set(node.addresses.held()) == {(SANDBOX, "eth0")}
    assert node.left() == []


async def test_a_note_of_another_interface_is_not_the_adds(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.leave("other")
    await node.call("ADD")
    assert node.left() == ["other@eth0"]


async def test_an_add_whose_note_cannot_be_carried_out_is_refused(tmp_path: Path) -> None:
    node = Node(tmp_path)
    await node.call("ADD")
    node.leave()
    node.addresses.broken = DiskFull("no space: make room")
    assert code(await node.call("ADD")) == 11
    node.notes.carry_out_all()
    assert node.left() == [f"{SANDBOX}@eth0"], "it stays until it works out"
    node.addresses.broken = None
    node.notes.carry_out_all()
    assert (node.left(), node.addresses.held()) == ([], {})


async def test_trouble_that_lasts_is_reported_once(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.leave()
    node.addresses.broken = DiskFull("no space: make room")
    for _ in range(3):
        node.notes.carry_out_all()
    assert [line["error"] for line in node.journal.lines()] == ["no space: make room"]


async def test_a_note_in_trouble_holds_up_no_other(tmp_path: Path) -> None:
    node = Node(tmp_path)
    await node.call("ADD", "z")
    (node.directory / "a@eth0").mkdir()
    node.leave("z")
    node.notes.carry_out_all()
    assert (node.left(), node.addresses.held()) == (["a@eth0"], {})
    with pytest.raises(StuckNote, match="cannot be read"):
        node.notes.carry_out("a", "eth0")
    assert code(await node.call("ADD", "a")) == 11


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (f"{SANDBOX}@eth0", b""),
        (f"{SANDBOX}@eth0", b"\xff\0\0"),
        (f"{SANDBOX}@eth0", encode_call({}, b"")),
        (f"{SANDBOX}@eth0", encode_call(environment("ADD"), config())),
        (f"{SANDBOX}@eth0", encode_call(environment("DEL", "other"), config())),
        ("readme.txt", b"hello"),
        ("\udcff@eth0", encode_call(environment("DEL"), config())),
    ],
    ids=repr,
)
async def test_what_is_no_del_of_what_its_name_says_frees_nothing_and_is_taken_away(
    tmp_path: Path, name: str, content: bytes
) -> None:
    node = Node(tmp_path)
    await node.call("ADD")
    node.leave(name=name, content=content)
    node.notes.carry_out_all()
    assert set(node.addresses.held()) == {(SANDBOX, "eth0")}
    assert node.left() == []
    assert node.journal.lines()[-1]["level"] == "warning"


async def test_a_note_that_is_still_being_written_is_left_alone(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.leave(name=".half", content=b"")
    node.notes.carry_out_all()
    assert node.left() == [".half"]


@pytest.mark.parametrize("sandbox", ["../../etc", "a\0b", "x" * 300])
async def test_a_name_no_file_can_have_has_no_note(tmp_path: Path, sandbox: str) -> None:
    node = Node(tmp_path)
    assert not node.notes.carry_out(sandbox, "eth0")


async def test_the_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    node = Node(tmp_path)
    for made in (node.directory, node.directory.parent):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700


async def test_a_directory_that_cannot_be_made_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("in the way")
    with pytest.raises(InvalidInput, match="cannot be made"):
        Node(tmp_path)


async def test_a_directory_that_vanishes_is_reported_and_survived(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.directory.rmdir()
    node.notes.carry_out_all()
    assert "cannot be read" in node.journal.lines()[-1]["error"]
    assert (await node.call("ADD")).exit_status == 0
