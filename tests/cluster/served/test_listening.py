"""Where the server listens, what it says when it cannot, and the files and bodies around it."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cluster.served.http_client import open_client
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.served import SERVED_KINDS, serving
from podtide.cluster.served.kubeconfig import ForeignKubeconfig, write_kubeconfig
from podtide.cluster.served.protobuf import read_namespace
from podtide.cluster.served.statuses import BadRequest, UnsupportedMediaType
from podtide.runtime.listening import CannotListen, ListenAddress

CREATE_NAMESPACE = (
    b"k8s\x00\n\x0f\n\x02v1\x12\tNamespace\x12\x1b\n\x13\n\x03foo\x12\x00\x1a\x00"
    b'"\x00*\x002\x008\x00B\x00\x12\x00\x1a\x02\n\x00\x1a\x00"\x00'
)
"""What `kubectl create namespace foo` of 1.36 sends."""


@pytest.mark.real_time
async def test_a_port_that_is_taken_is_said_in_one_line() -> None:
    async with open_client() as client:
        port = int(client.url.rpartition(":")[2])
        other = EmbeddedCluster(kinds=SERVED_KINDS)
        with pytest.raises(
            CannotListen, match=f"cannot listen on 127.0.0.1:{port}.*Address already in use.*port 0"
        ):
            async with serving(other.server, ListenAddress("127.0.0.1", port)):
                pass
        assert (await client.ask("GET", "/readyz")).code == 200


def test_a_kubeconfig_says_where_the_cluster_is_and_is_written_over_only_if_it_is_ours(
    tmp_path: Path,
) -> None:
    path = tmp_path / "config"
    for port in (1, 2):
        write_kubeconfig(path, f"http://127.0.0.1:{port}")
        (cluster,) = yaml.safe_load(path.read_text())["clusters"]
        assert cluster["cluster"] == {"server": f"http://127.0.0.1:{port}"}
    path.write_text("somebody's own")
    with pytest.raises(ForeignKubeconfig, match="not by podtide"):
        write_kubeconfig(path, "http://127.0.0.1:3")
    assert path.read_text() == "somebody's own"
    with pytest.raises(ForeignKubeconfig, match="cannot be written"):
        write_kubeconfig(tmp_path / "missing" / "config", "http://127.0.0.1:3")


def test_the_namespace_kubectl_sends_in_protobuf_is_read() -> None:
    assert read_namespace(CREATE_NAMESPACE)["metadata"] == {"name": "foo"}


def test_a_namespace_that_says_more_than_its_name_is_refused_rather_than_taken_by_half() -> None:
    labelled = CREATE_NAMESPACE.replace(b"\x12\x1b\n\x13", b"\x12\x23\n\x1b").replace(
        b"B\x00", b"B\x00Z\x06\n\x01a\x12\x01b"
    )
    with pytest.raises(UnsupportedMediaType):
        read_namespace(labelled)


@given(
    st.binary()
    | st.binary().map(lambda data: b"k8s\x00" + data)
    | st.integers(0, CREATE_NAMESPACE.rindex(b"\x1a") - 1).map(lambda end: CREATE_NAMESPACE[:end])
)
def test_what_is_no_namespace_in_protobuf_is_refused(body: bytes) -> None:
    with pytest.raises((BadRequest, UnsupportedMediaType)):
        read_namespace(body)
