"""Forwarding is turned on where the agent may."""

from pathlib import Path

import pytest

from podtide.agent.bridge.forwarding import turn_on_forwarding
from podtide.core.pool.address import Family

SWITCHES: list[tuple[Family, str]] = [(4, "net/ipv4/ip_forward"), (6, "net/ipv6/conf/all/forwarding")]


@pytest.mark.parametrize(("family", "name"), SWITCHES)
@pytest.mark.parametrize("before", ["0\n", "1\n"])
def test_it_is_on_afterwards(tmp_path: Path, family: Family, name: str, before: str) -> None:
    switch = tmp_path / name
    switch.parent.mkdir(parents=True)
    switch.write_text(before)
    assert turn_on_forwarding(family, tmp_path)
    assert switch.read_text().strip() == "1"


@pytest.mark.parametrize(("family", "name"), SWITCHES)
def test_a_switch_that_cannot_be_written_is_told(tmp_path: Path, family: Family, name: str) -> None:
    (tmp_path / name).mkdir(parents=True)  # not even root writes that
    assert not turn_on_forwarding(family, tmp_path)


def test_a_node_without_the_family_has_nothing_to_forward(tmp_path: Path) -> None:
    assert turn_on_forwarding(6, tmp_path)
