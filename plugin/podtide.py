#!/usr/bin/python3 -IS
"""podtide's CNI plugin where there is no Rust: the same behaviour as the program in src/, word for word.

The runtime starts it for every pod, and most of what Python does at start is import modules. So this file imports what
is compiled into the interpreter and nothing else: neither `json` nor `socket` nor `os`. It runs on Python 3.6 and
newer. PROTOCOL.md is all it knows.
"""

import _socket
import posix
from time import monotonic, sleep

PATIENCE_SECONDS = 2
"""How long the agent has to take the connection and to acknowledge. After that it says itself how long it needs."""

USUAL_WAIT_SECONDS = 5
LONGEST_WAIT_SECONDS = 3600
RETRY_SECONDS = 0.01

USUAL_SOCKET = b"/run/podtide/agent.sock"

MOST_CONFIGURATION = 1 << 20
"""Far more than any network needs. A runtime that sends more is broken, and must not fill our memory."""

MOST_HEAD = 1 << 16
MOST_LINE = 16
MOST_STDOUT = 1 << 20
MOST_DIGITS = 7
LONGEST_INTERFACE = 15
LONGEST_VERSION = 32

NEWEST = b"1.1.0"
SUPPORTED = b'["0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]'

LETTERS_AND_DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

STDIN, STDOUT, STDERR = 0, 1, 2

INVALID_ENVIRONMENT = 4
IO_FAILURE = 5
UNDECODABLE = 6
TRY_AGAIN_LATER = 11
NOT_AVAILABLE = 50
MEANINGS = {
    INVALID_ENVIRONMENT: "an environment variable is missing or malformed",
    IO_FAILURE: "reading or writing failed",
    UNDECODABLE: "the network configuration is not JSON of the right shape",
    TRY_AGAIN_LATER: "a passing condition: the same call may succeed later",
    NOT_AVAILABLE: "the plugin cannot serve ADD now",
}
"""CNI's codes in words; the agent uses the same."""


class Fault(Exception):
    """What went wrong, as CNI says it: a code that the runtime acts on, and a sentence for a person."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        self.message = message


class Silence(Exception):
    """Why there is no answer, in words that follow a colon."""


class Answer:
    """What the plugin prints, and how it ends."""

    def __init__(self, exit_status: int, stdout: bytes) -> None:
        self.exit_status = exit_status
        self.stdout = stdout


def main() -> int:
    """Carry the call out and print the answer; what comes back is the exit status."""
    occupy_standard_files()
    configuration = bytearray()
    try:
        read_configuration(configuration)
        answer = carry_out(bytes(configuration))
    except Fault as fault:
        answer = fault_answer(fault, version_of(bytes(configuration)))
    return print_answer(answer)


def occupy_standard_files() -> None:
    """Where the runtime closed one of the three, the socket must not come to stand in its place.

    What does can be read, and is empty, but not written: an answer must not vanish in it as if somebody had it.
    """
    while posix.open("/dev/null", posix.O_RDONLY) <= STDERR:
        pass


def read_configuration(configuration: bytearray) -> None:
    """Read stdin to its end. What was read before a fault is there too: it may state a version."""
    try:
        while len(configuration) <= MOST_CONFIGURATION:
            part = posix.read(STDIN, MOST_CONFIGURATION + 1 - len(configuration))
            if not part:
                return
            configuration += part
    except OSError as error:
        message = "the network configuration on stdin cannot be read"
        raise Fault(IO_FAILURE, f"{message}: {in_words(error)}") from error
    message = "the network configuration on stdin has more than 1 MiB; a network needs a few hundred bytes"
    raise Fault(UNDECODABLE, message)


def carry_out(configuration: bytes) -> Answer:
    """The answer of the agent, or the plugin's own where there is none."""
    verb = variable(b"CNI_COMMAND")
    if not verb:
        message = "CNI_COMMAND is not set; this is a CNI plugin, and container runtimes start it"
        raise Fault(INVALID_ENVIRONMENT, message)
    if verb == b"VERSION":
        return version_answer(configuration)
    socket = posix.environ.get(b"PODTIDE_SOCKET") or USUAL_SOCKET
    body = body_of(configuration)
    try:
        return ask(socket, body)
    except Silence as silence:
        why = str(silence)
    except OSError as error:
        why = in_words(error)
    said = f"{readable(verb)}: podtide's agent gave no answer on {readable(socket)}: {why}"
    return without_agent(verb, socket, body, said)


def without_agent(verb: bytes, socket: bytes, body: bytes, said: str) -> Answer:
    """The agent is away. A sandbox that is gone must not wait for it: a note tells the agent when it is back."""
    if verb == b"DEL":
        return leave_note(socket, body, said)
    if verb == b"STATUS":
        raise Fault(NOT_AVAILABLE, said)
    raise Fault(TRY_AGAIN_LATER, said)


def print_answer(answer: Answer) -> int:
    """An answer that does not reach the runtime was none: then the call has failed, whatever the agent did."""
    try:
        write(STDOUT, answer.stdout)
    except OSError:
        return 1
    return answer.exit_status


# The call: bytes that stay bytes. Whether they make sense is for the agent to say.


def variable(name: bytes) -> bytes:
    """The variable's value; empty counts as missing, as it does for every plugin."""
    return posix.environ.get(name, b"")


def body_of(configuration: bytes) -> bytes:
    """The call as the agent reads it, from its socket or from a note."""
    variables = [(name, value) for name, value in posix.environ.items() if name.startswith(b"CNI_")]
    return b"".join(b"%s=%s\0" % pair for pair in variables) + b"\0" + configuration


# Asking the node's agent, and how long that may take.


def ask(socket: bytes, body: bytes) -> Answer:
    """Send the call and wait for the answer."""
    agent = Conversation("acknowledgement", PATIENCE_SECONDS)
    agent.connect(socket)
    agent.send(b"POST /cni HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    wait = parse_acknowledgement(agent.receive_through(b"\r\n\r\n", MOST_HEAD))
    agent.begin("answer", wait)
    exit_status, length = parse_line(agent.receive_through(b"\n", MOST_LINE))
    return Answer(exit_status, agent.receive(length))


class Conversation:
    """A connection on which nothing outlasts the time that is given to what is awaited."""

    def __init__(self, awaited: str, seconds: int) -> None:
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self._received = bytearray()
        self.begin(awaited, seconds)

    def begin(self, awaited: str, seconds: int) -> None:
        """From now on this is awaited, for so long."""
        self._awaited = awaited
        self._seconds = seconds
        self._end = monotonic() + seconds

    def connect(self, path: bytes) -> None:
        """Linux does not wait for room in the agent's queue where there is a time limit: so we do."""
        while True:
            self._limit_next_step()
            try:
                return self._socket.connect(path)
            except BlockingIOError:
                sleep(RETRY_SECONDS)

    def send(self, request: bytes) -> None:
        """Send all of it."""
        self._limit_next_step()
        try:
            self._socket.sendall(request)
        except _socket.timeout as error:
            raise self._late() from error

    def receive(self, length: int) -> bytes:
        """Exactly so many bytes."""
        while len(self._received) < length:
            self._receive_more()
        return self._take(length)

    def receive_through(self, ending: bytes, most: int) -> bytes:
        """Everything up to and with the ending, which must come within so many bytes."""
        while True:
            found = self._received.find(ending, 0, most)
            if found >= 0:
                return self._take(found + len(ending))
            if len(self._received) >= most:
                raise stranger()
            self._receive_more()

    def _take(self, length: int) -> bytes:
        taken = bytes(self._received[:length])
        del self._received[:length]
        return taken

    def _receive_more(self) -> None:
        self._limit_next_step()
        try:
            more = self._socket.recv(MOST_HEAD)
        except _socket.timeout as error:
            raise self._late() from error
        if not more:
            raise Silence("it ended the connection before its answer was whole")
        self._received += more

    def _limit_next_step(self) -> None:
        left = self._end - monotonic()
        if left <= 0:
            raise self._late()
        self._socket.settimeout(left)

    def _late(self) -> Silence:
        return Silence(f"no {self._awaited} within {self._seconds} seconds")


def parse_acknowledgement(head: bytes) -> int:
    """Status line and headers: for how many seconds the agent may take from here on."""
    lines = head.split(b"\r\n")
    status = lines[0].split(b" ")
    if status[0] not in (b"HTTP/1.0", b"HTTP/1.1") or status[1:2] != [b"200"]:
        raise stranger()
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if colon and name.lower() == b"podtide-wait":
            wait = value.strip(b" \t")
            return min(int(wait), LONGEST_WAIT_SECONDS) if is_number(wait) else USUAL_WAIT_SECONDS
    return USUAL_WAIT_SECONDS


def parse_line(line: bytes) -> "tuple[int, int]":
    """`<exit status> <length>`."""
    exit_status, length = line[:2], line[2:-1]
    if exit_status not in (b"0 ", b"1 ") or not is_number(length) or int(length) > MOST_STDOUT:
        raise stranger()
    return int(exit_status), int(length)


def is_number(text: bytes) -> bool:
    """Digits alone, and few of them: neither a sign nor an overflow."""
    return text.isdigit() and len(text) <= MOST_DIGITS


def stranger() -> Silence:
    """Somebody else has the socket."""
    return Silence("what answers there is not podtide's agent")


# A DEL that found no agent: a file beside the socket, which the agent carries out when it is back.


def leave_note(socket: bytes, body: bytes, why: str) -> Answer:
    """Leave the call as a note, which is all that a DEL needs to succeed; `why` says what made it necessary."""
    container, interface = variable(b"CNI_CONTAINERID"), variable(b"CNI_IFNAME")
    if not is_container_id(container) or not is_interface(interface):
        message = "and no note can be left without a proper CNI_CONTAINERID and CNI_IFNAME"
        raise Fault(INVALID_ENVIRONMENT, f"{why}; {message}")
    beside, slash, _ = socket.rpartition(b"/")
    directory = beside + slash + b"deleted"
    try:
        write_note(directory, container + b"@" + interface, body)
    except OSError as error:
        message = f"and no note can be left in {readable(directory)}: {in_words(error)}"
        raise Fault(TRY_AGAIN_LATER, f"{why}; {message}") from error
    return Answer(0, b"")


def is_container_id(text: bytes) -> bool:
    """Whether CNI allows it as a container's id."""
    return text[:1].isalnum() and not text.strip(LETTERS_AND_DIGITS + b"_.-")


def is_interface(text: bytes) -> bool:
    """Whether Linux allows it as an interface's name."""
    length_fits = 1 <= len(text) <= LONGEST_INTERFACE
    return (
        length_fits and text not in (b".", b"..") and not any(byte in b"/: \t\n\x0b\x0c\r" for byte in text)
    )


def write_note(directory: bytes, name: bytes, content: bytes) -> None:
    """Written under another name and renamed, so that the agent never reads half a note."""
    make_directory(directory)
    unfinished = b"%s/.%s.%d" % (directory, name, posix.getpid())
    file = posix.open(unfinished, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC, 0o600)
    try:
        write(file, content)
        posix.rename(unfinished, directory + b"/" + name)
    except OSError:
        posix.unlink(unfinished)
        raise


def make_directory(path: bytes) -> None:
    """Before the agent's first start not even the socket's directory is there."""
    try:
        posix.mkdir(path, 0o700)
    except FileExistsError:
        pass
    except FileNotFoundError:
        make_directory(path.rpartition(b"/")[0])
        posix.mkdir(path, 0o700)


# The version that a configuration states. To parse it is the agent's business, but an error is to be said in the
# caller's version also where no agent answers, and so one key is looked for.


def version_answer(configuration: bytes) -> Answer:
    """The answer to VERSION."""
    stated = version_of(configuration)
    return Answer(0, b'{"cniVersion":"%s","supportedVersions":%s}\n' % (stated, SUPPORTED))


def version_of(configuration: bytes) -> bytes:
    """The configuration's `cniVersion`, or the newest where it states none that could be a version."""
    text = stated_version(configuration)
    could_be_a_version = 1 <= len(text) <= LONGEST_VERSION and not text.strip(LETTERS_AND_DIGITS + b".+-")
    return text if could_be_a_version else NEWEST


def stated_version(document: bytes) -> bytes:
    """The string behind the first key `cniVersion` of the outermost object; empty if there is none."""
    depth = 0
    named = False
    place = 0
    while True:
        start = document.find(b'"', place)
        end = string_end(document, start + 1)
        if start < 0 or end < 0:
            return b""
        between, text = document[place:start], document[start + 1 : end]
        if named and between.strip(b" \t\r\n") == b":":
            return text
        depth += sum(map(between.count, b"{[")) - sum(map(between.count, b"}]"))
        named = depth == 1 and text == b"cniVersion"
        place = end + 1


def string_end(document: bytes, start: int) -> int:
    """Where the quotation mark is that closes the string; -1 if there is none."""
    end = document.find(b'"', start)
    while end >= 0:
        backslash = end - 1
        while document[backslash] == ord("\\"):
            backslash -= 1
        if (end - backslash) % 2:
            break
        end = document.find(b'"', end + 1)
    return end


# Words and bytes.


def fault_answer(fault: Fault, cni_version: bytes) -> Answer:
    """The fault as the runtime reads it, in the caller's version."""
    texts = (readable(cni_version), fault.message, MEANINGS[fault.code])
    version, message, meaning = map(json_string, texts)
    document = f'{{"cniVersion":{version},"code":{fault.code},"msg":{message},"details":{meaning}}}\n'
    return Answer(1, document.encode())


def json_string(text: str) -> str:
    """The text as JSON writes it."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(f"\\u{ord(one):04x}" if one < " " else one for one in quoted) + '"'


def readable(text: bytes) -> str:
    """For a person: what is not UTF-8 becomes a mark."""
    return text.decode("utf-8", "replace")


def in_words(error: OSError) -> str:
    """What the system says."""
    return f"{error.strerror} (os error {error.errno})" if error.errno else str(error)


def write(file: int, content: bytes) -> None:
    """Write all of it."""
    while content:
        content = content[posix.write(file, content) :]


if __name__ == "__main__":
    try:
        exit_status = main()
    except KeyboardInterrupt:
        exit_status = 130  # as if the signal had ended it: without a stack trace
    posix._exit(exit_status)  # noqa: SLF001 - its name in every Python; there is nothing to clean up, which takes time
