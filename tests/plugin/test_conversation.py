"""What the plugin hands to the agent, and what it makes of the answer: nothing is added, nothing is lost."""

import signal
import socket
import threading

import pytest

from plugin.executables import ATTACHMENT, CONFIGURATION, Plugin
from plugin.scripted_agent import (
    ACKNOWLEDGED,
    Request,
    ScriptedAgent,
    answer,
    answering,
    read_request,
    saying,
)

pytestmark = pytest.mark.real_time

RESULT = b'{"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.5/24"}]}'


def sent_by(
    plugin: Plugin, environment: dict[str, str | bytes], configuration: bytes = CONFIGURATION
) -> Request:
    """What arrives at the agent."""
    requests = []

    def behave(connection: socket.socket) -> None:
        requests.append(read_request(connection))
        connection.sendall(ACKNOWLEDGED + answer(b""))

    with ScriptedAgent(plugin.socket, behave):
        outcome = plugin.run("ADD", environment, configuration=configuration)
    assert outcome.exit_status == 0
    (request,) = requests
    return request


def test_the_request_is_one_post_that_says_its_length(plugin: Plugin) -> None:
    request = sent_by(plugin, dict(ATTACHMENT))
    assert request.head.splitlines() == [
        b"POST /cni HTTP/1.0",
        b"Content-Length: %d" % len(request.body),
        b"",
    ]


def test_variables_of_cni_are_handed_on_and_no_other(plugin: Plugin) -> None:
    request = sent_by(plugin, {**ATTACHMENT, "CNI_ARGS": "", "CNI": "no", "XCNI_A": "no", "PATH": "/bin"})
    assert request.variables == {
        b"CNI_COMMAND": b"ADD",
        b"CNI_PATH": b"/opt/cni/bin",
        b"CNI_CONTAINERID": b"sandbox-1",
        b"CNI_IFNAME": b"eth0",
        b"CNI_NETNS": b"/var/run/netns/one",
        b"CNI_ARGS": b"",
    }


def test_variables_are_bytes_that_need_not_be_text(plugin: Plugin) -> None:
    value = bytes(range(1, 256))
    assert sent_by(plugin, {**ATTACHMENT, "CNI_ARGS": value}).variables[b"CNI_ARGS"] == value


@pytest.mark.parametrize(
    "configuration",
    [b"", b"\0\0", bytes(range(256)), b"{}" + b" " * (2**20 - 2)],
    ids=["nothing", "NULs", "every byte", "one MiB"],
)
def test_stdin_is_handed_on_as_it_came(plugin: Plugin, configuration: bytes) -> None:
    assert sent_by(plugin, dict(ATTACHMENT), configuration).configuration == configuration


@pytest.mark.parametrize("verb", ["ADD", "DEL", "CHECK", "STATUS", "GC", "WHATEVER"])
@pytest.mark.parametrize(("exit_status", "stdout"), [(0, b""), (0, RESULT), (1, b'{"code": 7}')])
def test_the_answer_is_printed_as_it_is(plugin: Plugin, verb: str, exit_status: int, stdout: bytes) -> None:
    with ScriptedAgent(plugin.socket, answering(stdout, exit_status=exit_status)):
        outcome = plugin.run(verb)
    assert (outcome.exit_status, outcome.stdout) == (exit_status, stdout)


def test_an_answer_may_be_large(plugin: Plugin) -> None:
    stdout = b"x" * 2**20
    with ScriptedAgent(plugin.socket, answering(stdout)):
        assert plugin.run("ADD").stdout == stdout


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.0 200 OK\r\nPodtide-Wait: 15\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nDate: today\r\nPODTIDE-WAIT:15\r\nServer: s\r\n\r\n",
        b"HTTP/1.1 200\r\nPodtide-Wait: 99999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nPodtide-Wait: soon\r\nno colon\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nX: " + b"x" * 60_000 + b"\r\n\r\n",
        b"HTTP/1.0 200 \xff\r\n\xff: \xff\r\n\r\n",
    ],
)
def test_any_acknowledgement_of_http_will_do(plugin: Plugin, head: bytes) -> None:
    with ScriptedAgent(plugin.socket, saying(head, answer(RESULT))):
        assert plugin.run("ADD").stdout == RESULT


def test_the_answer_may_come_in_pieces(plugin: Plugin) -> None:
    whole = ACKNOWLEDGED + answer(RESULT)
    pieces = [whole[place : place + 1] for place in range(len(whole))]
    with ScriptedAgent(plugin.socket, saying(*pieces)):
        assert plugin.run("ADD").stdout == RESULT


def test_what_follows_the_answer_is_not_waited_for(plugin: Plugin) -> None:
    done = threading.Event()

    def behave(connection: socket.socket) -> None:
        saying(ACKNOWLEDGED + answer(RESULT) + b"more")(connection)
        done.wait()

    with ScriptedAgent(plugin.socket, behave):
        outcome = plugin.run("ADD")
        done.set()
    assert outcome.stdout == RESULT


@pytest.mark.slow
def test_an_acknowledged_add_waits_longer_than_the_agent_has_to_acknowledge(plugin: Plugin) -> None:
    def behave(connection: socket.socket) -> None:
        saying(b"HTTP/1.0 200 OK\r\nPodtide-Wait: 60\r\n\r\n")(connection)
        connection.settimeout(2.5)  # longer than the plugin's patience; it must not hang up
        with pytest.raises(TimeoutError):
            connection.recv(1)
        connection.settimeout(None)
        connection.sendall(answer(RESULT))

    with ScriptedAgent(plugin.socket, behave):
        assert plugin.run("ADD").stdout == RESULT


def test_a_plugin_that_was_stopped_for_a_while_goes_on(plugin: Plugin) -> None:
    acknowledged, resumed = threading.Event(), threading.Event()

    def behave(connection: socket.socket) -> None:
        saying(ACKNOWLEDGED)(connection)
        acknowledged.set()
        resumed.wait()
        connection.sendall(answer(RESULT))

    with ScriptedAgent(plugin.socket, behave), plugin.start("ADD") as started:
        started.feed(CONFIGURATION)
        acknowledged.wait()
        started.process.send_signal(signal.SIGSTOP)
        started.process.send_signal(signal.SIGCONT)
        resumed.set()
        assert started.outcome().stdout == RESULT


def test_the_socket_is_where_the_environment_says(plugin: Plugin) -> None:
    elsewhere = plugin.socket.with_name("another.sock")
    with ScriptedAgent(elsewhere, answering(RESULT)):
        assert plugin.run("ADD", {**ATTACHMENT, "PODTIDE_SOCKET": str(elsewhere)}).stdout == RESULT
    assert "/run/podtide/agent.sock" in plugin.run("ADD", {**ATTACHMENT, "PODTIDE_SOCKET": ""}).error.msg
