"""A token that the other side does not know, through every command that shows one: whose it is, and what to do."""

import asyncio
import hashlib
import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from allocator.service.running import open_store, served
from cli.conftest import Run
from cli.processes import running
from podtide.allocator.service.tokens import Tokens
from podtide.runtime.clock import SystemClock
from podtide.runtime.logging import make_logger

UNAUTHORIZED = {"kind": "Status", "status": "Failure", "message": "Unauthorized", "reason": "Unauthorized"}


class Refusing(BaseHTTPRequestHandler):
    """An API server as it answers who shows a token that it does not know."""

    def do_GET(self) -> None:
        body = json.dumps(UNAUTHORIZED | {"code": 401}).encode()
        self.send_response(401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Nothing."""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """One with a token that its server does not know."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    path = tmp_path / "kubeconfig"
    document = {
        "current-context": "east",
        "contexts": [{"name": "east", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "u", "user": {"token": "wrong"}}],
    }
    path.write_text(json.dumps(document))
    yield path
    server.shutdown()
    serving.join()
    server.server_close()


def sentence(kubeconfig: Path) -> str:
    return (
        f"does not accept the credentials of context east in {kubeconfig}; renew the token or certificate there, or name "
        "others by --kubeconfig or --context"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("check",),
        ("top", "--once"),
        ("why", "pod-1"),
        ("why", "node/node-1"),
        ("migrate", "whereabouts", "--dry-run"),
    ],
    ids=" ".join,
)
def test_a_token_that_the_api_server_does_not_know(
    podtide: Run, kubeconfig: Path, arguments: tuple[str, ...]
) -> None:
    outcome = podtide(*arguments, "--kubeconfig", str(kubeconfig))
    *progress, last = outcome.err.splitlines()
    assert (outcome.status, outcome.out, len(progress)) == (2, "", arguments[0] == "migrate")
    assert sentence(kubeconfig) in last
    assert "wrong" not in outcome.err


@pytest.mark.real_time
@pytest.mark.parametrize("name", ["agent", "controller"])
async def test_a_program_that_goes_on_trying_says_it_in_its_log(
    kubeconfig: Path, tmp_path: Path, name: str
) -> None:
    options: dict[str, tuple[str | Path, ...]] = {
        "agent": ("--node-name", "n1", "--state-directory", tmp_path / "state", "--socket", tmp_path / "s"),
        "controller": (
            *("--cluster-name", "east", "--network", "blue", "--subnet", "pods"),
            *("--database", f"sqlite:///{tmp_path}/subnets.db"),
        ),
    }
    said = {
        "agent": "cannot list or watch the cluster: retrying",
        "controller": "cannot stand for election; will go on trying",
    }
    async with running(name, *options[name], "--kubeconfig", kubeconfig) as program:
        assert sentence(kubeconfig) in (await program.logged(said[name]))["error"]
        await program.stop()


@pytest.fixture
def allocator(tmp_path: Path) -> Iterator[str]:
    """The URL of an allocator that knows one token."""
    known = hashlib.sha256(b"right").hexdigest()
    (tmp_path / "tokens").write_text(f"{known} administration\n")
    started, stopped = threading.Event(), threading.Event()
    urls: list[str] = []

    async def serve() -> None:
        tokens = Tokens(tmp_path / "tokens", make_logger(io.StringIO(), SystemClock()))
        async with await open_store() as store, served(store, tokens=tokens) as url:
            urls.append(url)
            started.set()
            await asyncio.to_thread(stopped.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    started.wait(20)
    yield urls[0]
    stopped.set()
    thread.join()


@pytest.mark.parametrize(
    "arguments",
    [
        ("list",),
        ("show", "blue", "pods"),
        ("add", "blue", "pods", "10.0.0.0/24"),
        ("grow", "blue", "pods", "10.0.1.0/24"),
        ("remove", "blue", "pods"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_token_that_the_allocator_does_not_know(
    podtide: Run, allocator: str, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    token = tmp_path / "token"
    token.write_text("wrong")
    outcome = podtide("subnet", *arguments, "--allocator", allocator, "--token-file", str(token))
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert (
        f"the token is not known here: have it added to the allocator's tokens file ({allocator} was shown the token of "
        f"--token-file {token}: correct it there, or name another file)"
    ) in outcome.err
    outcome = podtide("subnet", *arguments, "--allocator", allocator)
    assert f"({allocator} was shown no token: give --token-file FILE)" in outcome.err
