"""A DEL without an agent: the sandbox is let go, and a note tells the agent when it is back."""

import os
import stat
from contextlib import ExitStack
from pathlib import Path

import pytest

from plugin.executables import ATTACHMENT, CONFIGURATION, Outcome, Plugin, without_privileges
from plugin.scripted_agent import (
    ACKNOWLEDGED,
    Behaviour,
    Request,
    ScriptedAgent,
    answering,
    hanging_after,
    saying,
)

pytestmark = pytest.mark.real_time

NOTE = "sandbox-1@eth0"
DONE = Outcome(0, b"")


def test_the_note_is_the_request_that_could_not_be_made(plugin: Plugin) -> None:
    configuration = bytes(range(256))
    assert plugin.run("DEL", {**ATTACHMENT, "CNI_ARGS": b"\xff"}, configuration=configuration) == DONE
    note = Request(b"", (plugin.socket.parent / "deleted" / NOTE).read_bytes())
    assert note.configuration == configuration
    assert note.variables == {
        b"CNI_COMMAND": b"DEL",
        b"CNI_PATH": b"/opt/cni/bin",
        b"CNI_CONTAINERID": b"sandbox-1",
        b"CNI_IFNAME": b"eth0",
        b"CNI_NETNS": b"/var/run/netns/one",
        b"CNI_ARGS": b"\xff",
    }


def test_nothing_but_the_note_is_left_and_nobody_else_may_read_it(plugin: Plugin) -> None:
    plugin.run("DEL")
    directory = plugin.socket.parent / "deleted"
    assert [path.name for path in directory.iterdir()] == [NOTE]
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((directory / NOTE).stat().st_mode) == 0o600


def test_a_repeated_del_replaces_its_note(plugin: Plugin) -> None:
    plugin.run("DEL", configuration=b"a longer configuration")
    plugin.run("DEL", configuration=b"a shorter one")
    note = plugin.socket.parent / "deleted" / NOTE
    assert Request(b"", note.read_bytes()).configuration == b"a shorter one"


def test_every_interface_of_a_sandbox_has_its_own_note(plugin: Plugin) -> None:
    for interface in ("eth0", "net1", "a@b"):
        plugin.run("DEL", {**ATTACHMENT, "CNI_IFNAME": interface})
    names = {path.name for path in (plugin.socket.parent / "deleted").iterdir()}
    assert names == {"sandbox-1@eth0", "sandbox-1@net1", "sandbox-1@a@b"}


def test_before_the_agents_first_start_the_directory_is_made(plugin: Plugin, directory: Path) -> None:
    socket = directory / "run" / "podtide" / "agent.sock"
    assert plugin.run("DEL", {**ATTACHMENT, "PODTIDE_SOCKET": str(socket)}) == DONE
    assert (socket.parent / "deleted" / NOTE).exists()


def test_a_relative_path_means_the_same_for_socket_and_note(plugin: Plugin, directory: Path) -> None:
    here = ("env", "-C", str(directory))
    with plugin.start("DEL", {**ATTACHMENT, "PODTIDE_SOCKET": "agent.sock"}, before=here) as started:
        assert started.outcome(CONFIGURATION) == DONE
    assert (directory / "deleted" / NOTE).exists()


@pytest.mark.parametrize(
    "behaviour",
    [saying(), saying(ACKNOWLEDGED), saying(b"HTTP/1.0 500 Oh\r\n\r\n"), saying(ACKNOWLEDGED + b"0 9\n{")],
    ids=["dies at once", "acknowledges and dies", "refuses", "answers by half"],
)
def test_an_agent_that_gave_no_answer_finds_a_note(plugin: Plugin, behaviour: Behaviour) -> None:
    with ScriptedAgent(plugin.socket, behaviour):
        assert plugin.run("DEL") == DONE
    assert (plugin.socket.parent / "deleted" / NOTE).exists()


@pytest.mark.slow
def test_an_agent_that_hangs_finds_a_note(executable: Path, directory: Path) -> None:
    soon = b"HTTP/1.0 200 OK\r\nPodtide-Wait: 1\r\n\r\n"
    with ExitStack() as stack:
        started = []
        for name, pieces in (("silent", ()), ("slow", (soon,))):
            plugin = Plugin(executable, directory / name / "agent.sock")
            plugin.socket.parent.mkdir()
            stack.enter_context(ScriptedAgent(plugin.socket, hanging_after(*pieces)))
            running = stack.enter_context(plugin.start("DEL"))
            running.feed(CONFIGURATION)
            started.append((plugin, running))
        for plugin, running in started:
            assert running.outcome() == DONE
            assert (plugin.socket.parent / "deleted" / NOTE).exists()


def test_an_agent_that_refuses_a_del_is_an_agent_and_gets_no_note(plugin: Plugin) -> None:
    with ScriptedAgent(plugin.socket, answering(b'{"code": 7}', exit_status=1)):
        assert plugin.run("DEL") == Outcome(1, b'{"code": 7}')
    assert not (plugin.socket.parent / "deleted").exists()


@pytest.mark.parametrize("verb", ["ADD", "CHECK", "STATUS", "GC"])
def test_no_other_verb_leaves_a_note(plugin: Plugin, verb: str) -> None:
    assert plugin.run(verb).exit_status == 1
    assert not (plugin.socket.parent / "deleted").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"CNI_CONTAINERID": ""},
        {"CNI_CONTAINERID": "../../etc/passwd"},
        {"CNI_CONTAINERID": ".hidden"},
        {"CNI_CONTAINERID": "a@b"},
        {"CNI_CONTAINERID": "a\n"},
        {"CNI_CONTAINERID": b"a\xff"},
        {"CNI_IFNAME": ""},
        {"CNI_IFNAME": "."},
        {"CNI_IFNAME": ".."},
        {"CNI_IFNAME": "a/b"},
        {"CNI_IFNAME": "a:b"},
        {"CNI_IFNAME": "a b"},
        {"CNI_IFNAME": "a\x0bb"},
        {"CNI_IFNAME": "sixteen-letters-"},
    ],
    ids=repr,
)
def test_a_note_that_cannot_be_named_is_an_invalid_environment(
    plugin: Plugin, wrong: dict[str, str | bytes]
) -> None:
    error = plugin.run("DEL", {**ATTACHMENT, **wrong}).error
    assert error.code == 4
    assert "CNI_CONTAINERID and CNI_IFNAME" in error.msg
    assert not (plugin.socket.parent / "deleted").exists()


def test_names_that_cni_and_linux_allow_are_good_for_a_note(plugin: Plugin) -> None:
    environment: dict[str, str | bytes] = {
        **ATTACHMENT,
        "CNI_CONTAINERID": "0aZ_.-",
        "CNI_IFNAME": b"fifteen-bytes\xff!",
    }
    assert plugin.run("DEL", environment) == DONE
    assert plugin.socket.with_name("deleted").joinpath(os.fsdecode(b"0aZ_.-@fifteen-bytes\xff!")).exists()


def test_a_note_that_cannot_be_written_fails_the_del_and_it_is_tried_again(plugin: Plugin) -> None:
    plugin.socket.with_name("deleted").write_text("a file where the directory should be")
    error = plugin.run("DEL").error
    assert error.code == 11
    assert f"no note can be left in {plugin.socket.parent}/deleted: " in error.msg
    assert f"gave no answer on {plugin.socket}: No such file or directory" in error.msg


def test_a_directory_one_may_not_write_to_fails_the_del(plugin: Plugin, directory: Path) -> None:
    directory.chmod(0o500)
    with plugin.start("DEL", before=without_privileges()) as started:
        error = started.outcome(CONFIGURATION).error
    directory.chmod(0o700)
    assert error.code == 11
    assert error.msg.endswith("Permission denied (os error 13)")


def test_a_note_that_fails_in_the_middle_leaves_nothing_behind(plugin: Plugin) -> None:
    in_its_place = plugin.socket.parent / "deleted" / NOTE
    in_its_place.mkdir(parents=True)
    assert plugin.run("DEL").error.msg.endswith("Is a directory (os error 21)")
    assert list(in_its_place.parent.iterdir()) == [in_its_place]
