import json
from ipaddress import ip_interface
from typing import Any

import pytest

from podtide.cni.attachments import CniAttachment, previous_addresses, valid_attachments
from podtide.cni.errors import Undecodable
from podtide.core.errors import InvalidConfig

ALIVE = [{"containerID": "c1", "ifname": "eth0"}, {"containerID": "c1", "ifname": "net1"}]


def gc(**keys: Any) -> str:
    return json.dumps({"cniVersion": "1.1.0", "name": "net", "ipam": {"type": "podtide"}} | keys)


def test_gc_names_what_is_alive() -> None:
    assert valid_attachments(gc(**{"cni.dev/valid-attachments": ALIVE})) == {
        CniAttachment(container_id="c1", ifname="eth0"),
        CniAttachment(container_id="c1", ifname="net1"),
    }


def test_the_drafts_name_for_the_list_is_read_too() -> None:
    assert len(valid_attachments(gc(**{"cni.dev/attachments": ALIVE}))) == 2


def test_the_specifications_name_wins_over_the_drafts() -> None:
    both = {"cni.dev/valid-attachments": ALIVE, "cni.dev/attachments": []}
    assert len(valid_attachments(gc(**both))) == 2


@pytest.mark.parametrize("empty", [[], None])
def test_an_empty_list_says_that_nothing_is_alive(empty: list[Any] | None) -> None:
    assert valid_attachments(gc(**{"cni.dev/valid-attachments": empty})) == frozenset()


def test_a_list_that_is_not_there_is_not_an_empty_one() -> None:
    with pytest.raises(InvalidConfig, match=r"GC needs cni\.dev/valid-attachments"):
        valid_attachments(gc())


@pytest.mark.parametrize(
    "entry",
    [{}, {"containerID": "c1"}, {"ifname": "eth0"}, {"containerID": "", "ifname": "eth0"}, "c1", None],
)
def test_an_entry_that_names_no_attachment_is_an_error(entry: Any) -> None:
    with pytest.raises(InvalidConfig, match=r"cni\.dev/valid-attachments"):
        valid_attachments(gc(**{"cni.dev/valid-attachments": [*ALIVE, entry]}))


def test_check_is_told_what_add_answered() -> None:
    previous = {
        "cniVersion": "1.0.0",
        "interfaces": [{"name": "eth0"}],
        "ips": [{"address": "10.0.0.5/24", "interface": 0}, {"version": "6", "address": "fd00::5/64"}],
    }
    assert previous_addresses(gc(prevResult=previous)) == {
        ip_interface("10.0.0.5/24"),
        ip_interface("fd00::5/64"),
    }


@pytest.mark.parametrize("keys", [{}, {"prevResult": None}])
def test_check_without_adds_answer_has_nothing_to_check(keys: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfig, match="CHECK needs prevResult"):
        previous_addresses(gc(**keys))


@pytest.mark.parametrize("ips", [[{"address": "10.0.0.5"}], [{}], "10.0.0.5/24"])
def test_an_answer_of_add_without_proper_addresses_is_an_error(ips: Any) -> None:
    with pytest.raises(InvalidConfig):
        previous_addresses(gc(prevResult={"ips": ips}))


@pytest.mark.parametrize("reader", [valid_attachments, previous_addresses])
def test_what_is_not_json_is_undecodable(reader: Any) -> None:
    with pytest.raises(Undecodable, match="network configuration is not JSON"):
        reader(b"{asdf}")
