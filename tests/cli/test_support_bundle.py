"""`podtide support-bundle`: everything to look into a problem by, and no secret, wherever one was planted."""

import json
import tarfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cli.conftest import Run
from cli.drawn_cluster import MANAGER, DrawnCluster, addresses, served
from cli.drawn_networks import draw_definition
from podtide.cli.shell.exit_status import ExitStatus
from podtide.cli.support_bundle.command import write_bundle
from podtide.cli.support_bundle.contents import BundleContents, LogLimits
from podtide.cli.support_bundle.redaction import REDACTED, Redactor
from podtide.cluster.port import Unavailable
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE

PLANTED = "planted-s3cr3t-0123456789"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJwbGFudGVkIn0.c2lnbmF0dXJl"


async def draw(drawn: DrawnCluster) -> None:
    """A node, one of podtide's pods, and secrets where people leave them."""
    await drawn.config("a", requested=2, granted=addresses(2))
    agent = await drawn.pod("podtide-agent-x", "a", "192.168.0.1", host_network=True, namespace="podtide")
    labels = {"app.kubernetes.io/name": "podtide", "app.kubernetes.io/component": "agent"}
    copied = json.dumps({"spec": {"containers": [{"env": [{"name": "DB", "value": PLANTED}]}]}})
    marks = {"kubectl.kubernetes.io/last-applied-configuration": copied, "my-token": PLANTED}
    metadata = replace(agent.metadata, labels=labels, annotations=marks)
    await drawn.cluster.replace(replace(agent, metadata=metadata), manager=MANAGER)
    await draw_definition(drawn, "cut", "10.7.0.0/24", password=PLANTED)


async def read_path(path: str, **query: str) -> bytes:
    """What an API server answers whose programs log secrets."""
    if path == "/version":
        return b'{"gitVersion": "v1.34.0"}'
    if path.endswith("/log"):
        assert query["tailLines"] == "100"
        lines = (
            f"authorization: Bearer {PLANTED}",
            f"GET https://user:{PLANTED}@allocator:9390/",
            f"PODTIDE_TOKEN={PLANTED} started",
            f'{{"password": "{PLANTED}", "event": "kept"}}',
            f"jwt {JWT}",
            f"-----BEGIN RSA PRIVATE KEY-----\n{PLANTED}\n-----END RSA PRIVATE KEY-----",
        )
        return "\n".join(lines).encode()
    raise Unavailable("the proxy does not answer")


def files_of(bundle: Path) -> dict[str, str]:
    with tarfile.open(bundle) as archive:
        return {
            member.name.partition("/")[2]: found.read().decode()
            for member in archive.getmembers()
            if (found := archive.extractfile(member)) is not None
        }


async def test_no_planted_secret_is_in_the_bundle_and_the_rest_is(tmp_path: Path) -> None:
    drawn, told = DrawnCluster(), list[str]()
    await draw(drawn)
    contents = BundleContents(
        drawn.cluster,
        None,
        read_path,
        namespace=SYSTEM_NAMESPACE,
        logs=LogLimits(lines=100, pods=5),
        redactor=Redactor(),
        tell=told.append,
    )
    bundle = tmp_path / "bundle.tar.gz"
    await write_bundle(bundle, contents)
    files = files_of(bundle)
    assert [name for name, text in files.items() if PLANTED in text or JWT in text] == []
    log = files["logs/podtide_podtide-agent-x_main.log"]
    assert '"event": "kept"' in log
    assert "started" in log
    assert json.loads(files["kubernetes-version.json"])["gitVersion"] == "v1.34.0"
    assert json.loads(files["objects/nodenetworkconfigs.json"])[0]["metadata"]["name"] == "a"
    assert json.loads(files["check.json"])["nodes"] == 1
    assert "secrets" not in " ".join(files)
    assert files["problems.txt"].splitlines() == [
        "allocator: not asked; name it with --allocator or --database",
        "metrics/podtide_podtide-agent-x.txt: the proxy does not answer",
    ]
    assert "check.json" in told
    assert bundle.stat().st_mode & 0o777 == 0o600


@given(st.text(min_size=8, max_size=40).filter(str.strip), st.text(max_size=50), st.text(max_size=50))
def test_a_secret_that_is_known_is_taken_out_wherever_it_stands(secret: str, before: str, after: str) -> None:
    redacted = Redactor([secret]).text(f"{before}{secret}{after}")
    assert secret not in redacted.replace(REDACTED, "") or secret in REDACTED or secret in f"{before}{after}"


def test_what_is_no_secret_stays() -> None:
    words = "node a holds 10.1.0.10 of subnet pods; 3 pods wait; tokens are read from a file"
    assert Redactor().text(words) == words
    document = {"name": "web", "ready": True, "count": 3, "value": 1, "list": ["a", {"b": None}]}
    assert Redactor().document(document) == document


def test_the_command_writes_a_file_once_and_says_what_is_missing(podtide: Run, tmp_path: Path) -> None:
    target = tmp_path / "out.tar.gz"
    token = tmp_path / "token"
    token.write_text(f"{PLANTED}\n")
    with served(draw, tmp_path) as kubeconfig:
        where = ("--kubeconfig", str(kubeconfig), "--file", str(target))
        written = podtide(
            "support-bundle", *where, "--allocator", "http://127.0.0.1:1", "--token-file", str(token)
        )
        again = podtide("support-bundle", *where)
        other = tmp_path / "other.tar.gz"
        document = podtide(
            "support-bundle", "--kubeconfig", str(kubeconfig), "--file", str(other), "-o", "json"
        )
        nowhere = podtide("support-bundle", "--kubeconfig", str(kubeconfig), "--file", "/nowhere/a.tar.gz")
    told = json.loads(document.out)
    assert (told["file"], told["bytes"]) == (str(other), other.stat().st_size)
    assert any("podtide-agent-x" in each for each in told["missing"])
    assert written.status == ExitStatus.DONE
    assert written.out.startswith(f"{target}: ")
    assert "podtide: reading objects/pods.json" in written.err
    assert "podtide: warning: logs/podtide_podtide-agent-x_main.log: " in written.err
    assert PLANTED not in "".join(files_of(target).values())
    assert nowhere == (
        *(2, ""),
        "podtide: /nowhere/a.tar.gz cannot be written: No such file or directory; name another file with --file\n",
    )
    assert again.status == ExitStatus.BAD_INPUT
    assert "exists already" in again.err
