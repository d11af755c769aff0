"""Credential plugins: real programs that do well, badly, or not at all."""

import json
import os
import pty
import sys
from pathlib import Path

import pytest

from patience import PATIENCE_SECONDS
from podtide.cluster.kubernetes import InvalidAccess
from podtide.cluster.kubernetes.access import KeyPair, Plugin, Secret
from podtide.cluster.kubernetes.exec_plugin import Credential, run_plugin

pytestmark = pytest.mark.real_time

V1, V1BETA1 = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"


def script(directory: Path, body: str) -> str:
    path = directory / "login"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def printing(directory: Path, status: dict[str, object], version: str = V1, first: str = "true") -> str:
    """A plugin that does something `first`, and then prints a credential."""
    answer = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
    return script(directory, f"{first}\ncat <<'END'\n{answer}\nEND")


@pytest.mark.parametrize("version", [V1, V1BETA1])
async def test_a_plugin_gives_a_token_and_when_it_expires(tmp_path: Path, version: str) -> None:
    command = printing(tmp_path, {"token": "t-1", "expirationTimestamp": "2026-11-05T12:00:00Z"}, version)
    read = await run_plugin(Plugin(command=command, api_version=version), PATIENCE_SECONDS)
    assert read == Credential(token=Secret("t-1"), key_pair=None, expires_at=1793880000.0)


async def test_a_plugin_gives_a_certificate(tmp_path: Path) -> None:
    command = printing(tmp_path, {"clientCertificateData": "cert", "clientKeyData": "key", "token": None})
    read = await run_plugin(Plugin(command=command, api_version=V1), PATIENCE_SECONDS)
    assert read == Credential(token=None, key_pair=KeyPair(Secret("cert"), Secret("key")), expires_at=None)


async def test_a_plugin_is_told_its_arguments_its_environment_and_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "inherited")
    said = tmp_path / "said"
    report = f'printf "%s\\n" "$1" "$OURS" "$THEIRS" "$KUBERNETES_EXEC_INFO" > {said}'
    plugin = Plugin(
        command=printing(tmp_path, {"token": "t"}, first=report),
        api_version=V1,
        arguments=("get-token",),
        environment=(("THEIRS", Secret("given")),),
        interactive_mode="Never",
        cluster_info=Secret('{"server":"https://a"}'),
    )
    await run_plugin(plugin, PATIENCE_SECONDS)
    *words, question = said.read_text().splitlines()
    assert words == ["get-token", "inherited", "given"]
    assert json.loads(question) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://a"}},
    }


async def test_a_bare_name_is_looked_up_in_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printing(tmp_path, {"token": "t-1"})
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    read = await run_plugin(Plugin(command="login", api_version=V1), PATIENCE_SECONDS)
    assert read.token == Secret("t-1")


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("echo s3cret", "printed no ExecCredential"),
        ('echo \'{"kind": "ExecCredential"}\'', "printed no ExecCredential"),
        ("true", "printed no ExecCredential"),
        (
            "echo s3cret; echo one >&2; echo please log in >&2; echo >&2; exit 3",
            "failed with status 3 (please log in)",
        ),
        ("exit 1", "failed with status 1:"),
        ("kill -9 $$", "failed with status -9:"),
        (
            f"""echo '{{"apiVersion": "{V1BETA1}", "kind": "ExecCredential", "status": {{"token": "s3cret"}}}}'""",
            f"did not print an ExecCredential of {V1}",
        ),
        (
            f"""echo '{{"apiVersion": "{V1}", "kind": "ExecCredential", "status": {{}}}}'""",
            "gave neither a token nor a certificate with its key",
        ),
        (
            f"""echo '{{"apiVersion": "{V1}", "kind": "ExecCredential", "status": {{"clientKeyData": "s3cret"}}}}'""",
            "gave neither a token nor a certificate with its key",
        ),
        (
            f"""echo '{{"apiVersion": "{V1}", "kind": "ExecCredential",
            "status": {{"token": "s3cret", "expirationTimestamp": "soon"}}}}'""",
            "gave an invalid expirationTimestamp",
        ),
    ],
)
async def test_a_plugin_that_gives_no_credential_is_one_line_with_the_hint_and_no_secret(
    tmp_path: Path, body: str, complaint: str
) -> None:
    plugin = Plugin(command=script(tmp_path, body), api_version=V1, install_hint="run `login\nagain`")
    with pytest.raises(InvalidAccess) as caught:
        await run_plugin(plugin, PATIENCE_SECONDS)
    message = str(caught.value)
    assert message.startswith(f"the credential plugin {plugin.command} ")
    assert complaint in message
    assert message.endswith("run `login again`")
    assert "s3cret" not in message
    assert "\n" not in message


async def test_a_plugin_that_is_missing_is_said_with_its_hint() -> None:
    plugin = Plugin(command="podtide-test-no-such-plugin", api_version=V1, install_hint="install it")
    with pytest.raises(InvalidAccess, match="cannot be started: No such file or directory: install it"):
        await run_plugin(plugin, PATIENCE_SECONDS)


async def test_a_plugin_without_a_hint_is_said_with_advice(tmp_path: Path) -> None:
    with pytest.raises(InvalidAccess, match="run it by hand"):
        await run_plugin(Plugin(command=str(tmp_path), api_version=V1), PATIENCE_SECONDS)


@pytest.mark.parametrize("hang", ["exec sleep 1000", "sleep 1000; true", "sleep 1000 &"])
async def test_a_plugin_that_hangs_is_ended_with_all_it_started(tmp_path: Path, hang: str) -> None:
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    reader = os.open(alive, os.O_RDONLY | os.O_NONBLOCK)
    command = script(tmp_path, f"exec 3> {alive}\necho >&3\n{hang}")
    try:
        with pytest.raises(InvalidAccess, match=r"was not done within 0\.5 s"):
            await run_plugin(Plugin(command=command, api_version=V1), 0.5)
        assert os.read(reader, 10) == b"\n"
        assert os.read(reader, 10) == b""  # nobody holds its end any more
    finally:
        os.close(reader)


async def test_a_plugin_that_must_ask_a_person_needs_a_terminal(tmp_path: Path) -> None:
    plugin = Plugin(command=printing(tmp_path, {"token": "t"}), api_version=V1, interactive_mode="Always")
    with pytest.raises(InvalidAccess, match="needs a terminal"):
        await run_plugin(plugin, PATIENCE_SECONDS)


@pytest.mark.parametrize(("mode", "interactive"), [("Always", True), ("IfAvailable", True), ("Never", False)])
async def test_at_a_terminal_a_plugin_is_told_whether_it_may_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, interactive: bool
) -> None:
    said = tmp_path / "said"
    command = printing(tmp_path, {"token": "t"}, first=f'printf "%s" "$KUBERNETES_EXEC_INFO" > {said}')
    terminal, ours = pty.openpty()
    with os.fdopen(ours) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        await run_plugin(Plugin(command=command, api_version=V1, interactive_mode=mode), PATIENCE_SECONDS)
    os.close(terminal)
    assert json.loads(said.read_text())["spec"]["interactive"] is interactive
