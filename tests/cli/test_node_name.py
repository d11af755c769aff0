"""What a node is called where no option says it: the variable, the file that Whereabouts leaves, the host's name."""

import socket
from pathlib import Path

import pytest

from podtide.cli.programs.agent import NODE_NAME_FILES, find_node_name
from podtide.core.errors import InvalidInput


def test_the_variable_goes_before_the_file(tmp_path: Path) -> None:
    written = tmp_path / "nodename"
    written.write_text("by-file\n")
    assert find_node_name({"NODENAME": " by-variable\n"}, [written]) == "by-variable"


@pytest.mark.parametrize("variable", [{}, {"NODENAME": ""}, {"NODENAME": " "}])
def test_the_file_goes_before_the_hosts_name(tmp_path: Path, variable: dict[str, str]) -> None:
    written = tmp_path / "nodename"
    written.write_text("by-file\n")
    assert find_node_name(variable, [written]) == "by-file"


def test_of_several_files_the_first_with_a_name_in_it_counts(tmp_path: Path) -> None:
    missing, below_a_file, empty, first, second = (
        tmp_path / name for name in ("missing", "empty/nodename", "empty", "first", "second")
    )
    empty.write_text("\n")
    first.write_text("node-1")
    second.write_text("node-2")
    assert find_node_name({}, [missing, below_a_file, empty, first, second]) == "node-1"


def test_without_variable_and_file_it_is_the_hosts_name(tmp_path: Path) -> None:
    assert find_node_name({}, [tmp_path / "missing"]) == socket.gethostname().lower()


def test_the_hosts_name_is_lowered_as_a_kubelet_lowers_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "VM-1.Example")
    assert find_node_name({}, [tmp_path / "missing"]) == "vm-1.example"


def test_what_kubernetes_takes_for_no_name_is_refused_with_where_it_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = tmp_path / "nodename"
    written.write_text("Bad Name\n")
    monkeypatch.setattr(socket, "gethostname", lambda: "bad_name")
    for environment, files, source in (
        ({"NODENAME": "Bad Name"}, [], "the environment variable NODENAME 'Bad Name'"),
        ({}, [written], f"the node name in {written} 'Bad Name'"),
        ({}, [], "no --node-name is given, and the host's name 'bad_name'"),
    ):
        with pytest.raises(InvalidInput) as refusal:
            find_node_name(environment, files)
        assert str(refusal.value).startswith(f"{source} is not a valid Kubernetes name: use lower-case")


def test_a_file_that_cannot_be_read_is_not_passed_over_for_a_guess(tmp_path: Path) -> None:
    garbled = tmp_path / "nodename"
    garbled.write_bytes(b"\xff\xfe")
    for path in (garbled, tmp_path):
        with pytest.raises(InvalidInput, match=r"cannot be read .*: correct that, or give --node-name$"):
            find_node_name({}, [path])


def test_the_files_are_beside_whereabouts_flat_files() -> None:
    assert tuple(map(str, NODE_NAME_FILES)) == (
        "/etc/kubernetes/cni/net.d/whereabouts.d/nodename",
        "/etc/cni/net.d/whereabouts.d/nodename",
    )
