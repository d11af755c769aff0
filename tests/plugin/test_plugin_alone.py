"""What the plugin answers by itself, and what it makes of a runtime that misbehaves."""

import os
import signal
import socket
import subprocess
import threading
from pathlib import Path

import msgspec
import pytest

from plugin.executables import ATTACHMENT, CONFIGURATION, Outcome, Plugin
from plugin.scripted_agent import ACKNOWLEDGED, ScriptedAgent, answering, saying, wait_until_gone
from podtide.cni.versions import LATEST, SUPPORTED, version_answer

pytestmark = pytest.mark.real_time


@pytest.mark.parametrize("version", ["", *SUPPORTED])
def test_version_is_answered_without_an_agent_as_the_agent_would(plugin: Plugin, version: str) -> None:
    configuration = msgspec.json.encode({"cniVersion": version} if version else {})
    outcome = plugin.run("VERSION", {}, configuration=configuration)
    assert outcome.exit_status == 0
    assert outcome.document == msgspec.json.decode(msgspec.json.encode(version_answer(version)))


@pytest.mark.parametrize("configuration", [b"", b"garbage", b"[]", b"\xff\0", b'{"cniVersion": "'])
def test_version_is_answered_whatever_is_on_stdin(plugin: Plugin, configuration: bytes) -> None:
    outcome = plugin.run("VERSION", {}, configuration=configuration)
    assert outcome.document == {"cniVersion": LATEST, "supportedVersions": list(SUPPORTED)}


@pytest.mark.parametrize(
    ("configuration", "version"),
    [
        (b'{"cniVersion":"0.4.0"}', "0.4.0"),
        (b' {\n"name" : "a\\\\\\"b" ,\t"ipam":{"x":[{}]}, "cniVersion" :\r\n "0.3.1" } ', "0.3.1"),
        (b'{"cniVersion": "9.9.9-rc.1+x"}', "9.9.9-rc.1+x"),
        (b'{"prevResult": {"cniVersion": "0.4.0"}}', LATEST),
        (b'[{"cniVersion": "0.4.0"}]', LATEST),
        (b'{"name": "cniVersion", "type": "0.4.0"}', LATEST),
        (b'{"name": "\\"cniVersion\\": \\"0.4.0\\""}', LATEST),
        (b'{"cniVersion": "", "x": "0.4.0"}', LATEST),
        (b'{"cniVersion": 4}', LATEST),
        (b'{"cniVersion": null, "x": "0.4.0"}', LATEST),
        (b'{"cniVersion": "0.4\\n.0"}', LATEST),
        (b'{"cniVersion": "0.4.0\xff"}', LATEST),
        (b'{"cniVersion": "' + b"1" * 33 + b'"}', LATEST),
        (b'{"cniVersion": "0.4.0", "torn', "0.4.0"),
        (b'{"cniVersion": x "0.4.0"}', LATEST),
        (b'{"\\\\": "\\\\\\"", "cniVersion": "0.4.0"}', "0.4.0"),
        (b"", LATEST),
    ],
)
def test_an_error_is_in_the_version_of_the_configuration(
    plugin: Plugin, configuration: bytes, version: str
) -> None:
    assert plugin.run("ADD", configuration=configuration).error.cni_version == version


@pytest.mark.parametrize("command", [{"CNI_COMMAND": ""}, {}], ids=["empty", "missing"])
def test_without_a_command_it_is_no_call(plugin: Plugin, command: dict[str, str]) -> None:
    with ScriptedAgent(plugin.socket, answering(b"{}")):
        run = subprocess.run(
            [plugin.path], env=ATTACHMENT | command, input=CONFIGURATION, capture_output=True, check=False
        )
    assert run.stderr == b""
    error = Outcome(run.returncode, run.stdout).error
    assert (error.code, error.cni_version) == (4, "1.0.0")
    assert "CNI_COMMAND" in error.msg


@pytest.mark.parametrize("verb", ["ADD", "DEL", "STATUS", "VERSION"])
def test_more_than_a_mebibyte_is_no_configuration(plugin: Plugin, verb: str) -> None:
    configuration = CONFIGURATION + b" " * (2**20 + 1 - len(CONFIGURATION))
    with ScriptedAgent(plugin.socket, answering(b"{}")):
        error = plugin.run(verb, configuration=configuration).error
    assert (error.code, error.cni_version) == (6, "1.0.0")
    assert "1 MiB" in error.msg


def test_a_stdin_that_never_ends_is_given_up(plugin: Plugin) -> None:
    with Path("/dev/zero").open("rb") as endless, plugin.start("ADD", stdin=endless) as started:
        assert started.outcome().error.code == 6


def test_a_stdin_that_cannot_be_read_is_told(plugin: Plugin) -> None:
    stdin, writing = os.pipe2(os.O_NONBLOCK)
    with plugin.start("ADD", stdin=stdin) as started:
        error = started.outcome().error
    os.close(stdin)
    os.close(writing)
    assert error.code == 5
    assert error.msg.endswith("Resource temporarily unavailable (os error 11)")


def closing(*files: str) -> tuple[str, ...]:
    """What starts a program with these of its standard files closed."""
    return ("/bin/sh", "-c", " ".join(['exec "$0"', *files]))


def test_a_closed_stdin_is_an_empty_one(plugin: Plugin) -> None:
    with (
        ScriptedAgent(plugin.socket, answering(b"{}")),
        plugin.start("ADD", before=closing("<&-")) as started,
    ):
        assert started.outcome() == Outcome(0, b"{}")


@pytest.mark.parametrize("files", [(">&-",), ("<&-", ">&-", "2>&-")], ids=["stdout", "all three"])
def test_an_add_whose_stdout_is_closed_fails_and_its_answer_goes_nowhere_else(
    plugin: Plugin, files: tuple[str, ...]
) -> None:
    behind_the_answer = []

    def behave(connection: socket.socket) -> None:
        answering(b"{}")(connection)
        behind_the_answer.append(connection.recv(1))

    with (
        ScriptedAgent(plugin.socket, behave),
        plugin.start("ADD", before=closing(*files)) as started,
    ):
        assert started.outcome() == Outcome(1, b"")
    assert behind_the_answer == [b""]


def test_a_del_has_nothing_to_say_and_needs_no_stdout(plugin: Plugin) -> None:
    with (
        ScriptedAgent(plugin.socket, answering(b"")),
        plugin.start("DEL", before=closing(">&-")) as started,
    ):
        assert started.outcome(CONFIGURATION) == Outcome(0, b"")


def test_an_answer_that_reaches_nobody_is_a_failure(plugin: Plugin) -> None:
    nobody_reads, stdout = os.pipe()
    os.close(nobody_reads)
    with (
        ScriptedAgent(plugin.socket, answering(b"{}")),
        plugin.start("ADD", stdout=stdout) as started,
    ):
        os.close(stdout)
        assert started.outcome(CONFIGURATION).exit_status == 1


def test_an_answer_for_a_full_disk_is_a_failure(plugin: Plugin) -> None:
    with (
        ScriptedAgent(plugin.socket, answering(b"{}")),
        Path("/dev/full").open("wb") as full,
        plugin.start("ADD", stdout=full) as started,
    ):
        assert started.outcome(CONFIGURATION).exit_status == 1


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_plugin_that_is_interrupted_says_nothing(plugin: Plugin, name: str) -> None:
    number = signal.Signals[name]
    reached = threading.Event()

    def behave(connection: socket.socket) -> None:
        saying(ACKNOWLEDGED)(connection)
        reached.set()
        wait_until_gone(connection)

    with ScriptedAgent(plugin.socket, behave), plugin.start("ADD") as started:
        started.feed(CONFIGURATION)
        reached.wait()
        started.process.send_signal(number)
        outcome = started.outcome()
    assert outcome.stdout == b""
    assert outcome.exit_status in {-number, 128 + number}
