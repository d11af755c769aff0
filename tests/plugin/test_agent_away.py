"""No agent, or none that speaks: the plugin ends by itself, soon, and with the code that makes the runtime try again."""

import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from time import sleep

import pytest

from plugin.executables import ATTACHMENT, CONFIGURATION, Plugin, without_privileges
from plugin.scripted_agent import (
    ACKNOWLEDGED,
    Behaviour,
    ScriptedAgent,
    answer,
    answering,
    hanging_after,
    saying,
    sip,
    trickle,
    wait_until_gone,
)

pytestmark = pytest.mark.real_time

VERBS_AND_CODES = [("ADD", 11), ("CHECK", 11), ("GC", 11), ("STATUS", 50), ("WHATEVER", 11)]


def nothing(path: Path) -> None:
    """No file at all."""


def a_plain_file(path: Path) -> None:
    path.write_bytes(b"")


def an_abandoned_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as abandoned:
        abandoned.bind(str(path))


@pytest.mark.parametrize(("verb", "code"), VERBS_AND_CODES)
@pytest.mark.parametrize(
    ("leave", "reason"),
    [
        (nothing, "No such file or directory (os error 2)"),
        (a_plain_file, "Connection refused (os error 111)"),
        (an_abandoned_socket, "Connection refused (os error 111)"),
    ],
)
def test_nobody_to_ask_is_told_by_the_code_and_in_words(
    plugin: Plugin, leave: Callable[[Path], None], reason: str, verb: str, code: int
) -> None:
    leave(plugin.socket)
    error = plugin.run(verb).error
    assert (error.code, error.cni_version) == (code, "1.0.0")
    assert error.msg == f"{verb}: podtide's agent gave no answer on {plugin.socket}: {reason}"


def test_a_socket_one_may_not_use_is_named(plugin: Plugin) -> None:
    with ScriptedAgent(plugin.socket, answering(b"{}")):
        plugin.socket.chmod(0)
        with plugin.start("ADD", before=without_privileges()) as started:
            error = started.outcome(CONFIGURATION).error
    assert error.code == 11
    assert error.msg.endswith("Permission denied (os error 13)")


def test_a_path_that_no_socket_can_have_is_told(plugin: Plugin) -> None:
    error = plugin.run("ADD", {**ATTACHMENT, "PODTIDE_SOCKET": "/" + "long/" * 50}).error
    assert error.code == 11
    assert "path" in error.msg


def test_a_path_that_is_not_text_is_told_in_json_all_the_same(plugin: Plugin) -> None:
    error = plugin.run("ADD", {**ATTACHMENT, "PODTIDE_SOCKET": b'/\xff\x01"\\'}).error
    assert '/\N{REPLACEMENT CHARACTER}\x01"\\' in error.msg


ENDINGS = {
    "at once": saying(),
    "within the acknowledgement": saying(b"HTTP/1.0 200 OK\r\nPodt"),
    "after the acknowledgement": saying(ACKNOWLEDGED),
    "within the answer's first line": saying(ACKNOWLEDGED + b"0 1"),
    "within the answer": saying(ACKNOWLEDGED + answer(b"{}")[:-1]),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(("verb", "code"), VERBS_AND_CODES)
def test_an_agent_that_dies_has_answered_nothing(plugin: Plugin, ending: str, verb: str, code: int) -> None:
    with ScriptedAgent(plugin.socket, ENDINGS[ending]):
        error = plugin.run(verb).error
    assert error.code == code
    assert error.msg.endswith("it ended the connection before its answer was whole")


def test_an_agent_that_dies_over_a_large_request_has_answered_nothing(plugin: Plugin) -> None:
    def behave(connection: socket.socket) -> None:
        connection.recv(1)

    with ScriptedAgent(plugin.socket, behave):
        assert plugin.run("ADD", configuration=b" " * 2**20).error.code == 11


STRANGERS = {
    "speaks another protocol": b"+OK ready\r\n\r\n",
    "refuses": b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
    "has nothing to say": b"HTTP/1.1 204 No Content\r\n\r\n",
    "answers with a page": b"HTTP/1.1 200 OK\r\n\r\n<html>\n",
    "has more headers than anybody reads": b"HTTP/1.0 200 OK\r\n" + b"X: x\r\n" * 20_000 + b"\r\n",
    "has an endless first line": ACKNOWLEDGED + b"0" * 100,
    "exits in a way of its own": ACKNOWLEDGED + b"2 0\n",
    "has a negative length": ACKNOWLEDGED + b"0 -1\n",
    "has a signed length": ACKNOWLEDGED + b"0 +2\n{}",
    "has no length": ACKNOWLEDGED + b"0 \n",
    "has an empty line": ACKNOWLEDGED + b"\n",
    "answers more than anybody prints": ACKNOWLEDGED + b"0 1048577\n" + b"x" * 1_048_577,
    "says a length beyond all numbers": ACKNOWLEDGED + b"0 9999999999999\n",
}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_another_program_on_the_socket_is_not_believed(plugin: Plugin, stranger: str) -> None:
    with ScriptedAgent(plugin.socket, saying(STRANGERS[stranger])):
        error = plugin.run("ADD").error
    assert error.code == 11
    assert error.msg.endswith("what answers there is not podtide's agent")


class FullQueue(AbstractContextManager["FullQueue"]):
    """A socket on which nobody accepts, with as many connections in its queue as go in."""

    def __init__(self, path: Path) -> None:
        self._stack = ExitStack()
        self._listening = self._stack.enter_context(socket.socket(socket.AF_UNIX))
        self._listening.bind(str(path))
        self._listening.listen(1)
        self._waiting = 0
        with suppress(BlockingIOError):
            while True:
                connection = self._stack.enter_context(socket.socket(socket.AF_UNIX))
                connection.setblocking(False)
                connection.connect(str(path))
                self._waiting += 1

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def next_behind(self) -> socket.socket:
        """Accept all that are in the queue, and then the one that could not get in."""
        for _ in range(self._waiting):
            self._accept()
        return self._accept()

    def _accept(self) -> socket.socket:
        return self._stack.enter_context(self._listening.accept()[0])


def hanging(behaviour: Behaviour) -> Callable[[Path], ScriptedAgent]:
    return lambda path: ScriptedAgent(path, behaviour)


A_SECOND = b"HTTP/1.0 200 OK\r\nPodtide-Wait: 1\r\n\r\n"
HANGS: dict[str, tuple[Callable[[Path], AbstractContextManager[object]], str]] = {
    "its queue is full": (FullQueue, "no acknowledgement within 2 seconds"),
    "it does not read": (hanging(wait_until_gone), "no acknowledgement within 2 seconds"),
    "it reads slowly": (hanging(sip), "no acknowledgement within 2 seconds"),
    "it acknowledges slowly": (hanging(trickle), "no acknowledgement within 2 seconds"),
    "it says nothing": (hanging(hanging_after()), "no acknowledgement within 2 seconds"),
    "it acknowledges by half": (
        hanging(hanging_after(b"HTTP/1.0 200 OK\r\nX")),
        "no acknowledgement within 2 seconds",
    ),
    "it asks for a second": (hanging(hanging_after(A_SECOND)), "no answer within 1 seconds"),
    "it answers by half": (hanging(hanging_after(A_SECOND, b"0 5\n{")), "no answer within 1 seconds"),
}
LARGE = CONFIGURATION + b" " * 2**19
"""More than a socket holds: who does not read it stops whoever sends it."""


@pytest.mark.slow
def test_an_agent_that_hangs_is_given_up_while_it_hangs(executable: Path, directory: Path) -> None:
    with ExitStack() as stack:
        started = {}
        for hang, (agent, _) in HANGS.items():  # all at the same time, or this would take half a minute
            plugin = Plugin(executable, directory / hang)
            stack.enter_context(agent(plugin.socket))
            started[hang] = stack.enter_context(plugin.start("ADD"))
        for running in started.values():
            running.feed(LARGE)
        errors = {hang: running.outcome().error for hang, running in started.items()}
    assert {hang: error.code for hang, error in errors.items()} == dict.fromkeys(HANGS, 11)
    reasons = {hang: error.msg.rpartition(": ")[2] for hang, error in errors.items()}
    assert reasons == {hang: reason for hang, (_, reason) in HANGS.items()}


def test_an_agent_whose_queue_is_full_for_a_moment_is_waited_for(plugin: Plugin) -> None:
    with FullQueue(plugin.socket) as queue, plugin.start("ADD") as started:
        started.feed(CONFIGURATION)
        sleep(0.2)  # long enough to come upon the full queue; a plugin that is slower proves less, and passes
        answering(b"{}")(queue.next_behind())
        assert started.outcome().stdout == b"{}"


@pytest.mark.slow
def test_an_agent_that_asks_for_no_time_has_five_seconds(plugin: Plugin) -> None:
    with ScriptedAgent(plugin.socket, hanging_after(ACKNOWLEDGED)):
        error = plugin.run("ADD").error
    assert error.msg.endswith("no answer within 5 seconds")
