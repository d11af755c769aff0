"""Every key of an IPAM configuration (design W15), through the plugin's calls; what cannot be meant is code 7."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agent.networks.network_bench import CLASSIC, Bench, configuration
from agent.networks.node_calls import NodeCalls, calling
from podtide.agent.api.plugin_protocol import Answer
from podtide.networks.attachments import AttachedNetwork, read_attachment
from podtide.resources.base import ObjectMeta
from podtide.resources.network_attachment import (
    NetworkAttachmentDefinition,
    NetworkAttachmentDefinitionSpec,
)

INVALID_CONFIG = 7
TRY_AGAIN_LATER = 11
SLICES = {"range": "10.0.0.0/16", "node_slice_size": "/24"}


async def first(ipam: dict[str, Any]) -> list[str]:
    async with calling() as node:
        return await node.addresses_of(ipam)


async def test_range_drops_host_bits() -> None:
    assert await first({"range": "192.168.2.225/28"}) == ["192.168.2.225/28"]
    async with calling() as node:
        await node.addresses_of({"range": "192.168.2.230/28"})
        assert set(await node.bench.pool("192.168.2.224-28")) == {"1"}


async def test_range_may_name_its_two_ends() -> None:
    assert await first({"range": "10.0.0.5-10.0.0.6/24"}) == ["10.0.0.5/24"]


async def test_range_start_and_range_end_bound_it() -> None:
    async with calling() as node:
        ipam = CLASSIC | {"range_start": "10.0.0.7", "range_end": "10.0.0.8"}
        given = [await node.addresses_of(ipam, sandbox) for sandbox in ("c1", "c2")]
        assert given == [["10.0.0.7/24"], ["10.0.0.8/24"]]
        assert (await node.refused(ipam, sandbox="c3"))[0] == 11


async def test_exclude_takes_away_networks_and_single_addresses() -> None:
    assert await first(CLASSIC | {"exclude": ["10.0.0.0/30", "10.0.0.4"]}) == ["10.0.0.5/24"]


async def test_ip_ranges_give_one_address_each_and_range_comes_first() -> None:
    further = [
        {"range": "10.1.0.0/24", "range_start": "10.1.0.9"},
        {"range": "fd00::/64", "exclude": ["fd00::1"]},
    ]
    assert await first({"ipRanges": further, **CLASSIC}) == ["10.0.0.1/24", "10.1.0.9/24", "fd00::2/64"]


async def test_range_end_of_one_of_ip_ranges_bounds_that_one_alone() -> None:
    ipam = CLASSIC | {"ipRanges": [{"range": "10.1.0.0/24", "range_end": "10.1.0.2"}]}
    async with calling() as node:
        given = [await node.addresses_of(ipam, sandbox) for sandbox in ("c1", "c2")]
        assert given == [["10.0.0.1/24", "10.1.0.1/24"], ["10.0.0.2/24", "10.1.0.2/24"]]
        refused, words = await node.refused(ipam, sandbox="c3")
        assert (refused, "no address of 10.1.0.0/24 is free" in words) == (11, True)
        assert len(await node.bench.pool("10.0.0.0-24")) == 2


async def test_gateway_goes_along_with_addresses_of_its_family_and_is_handed_to_nobody() -> None:
    async with calling() as node:
        result = await node.add({"ipRanges": [CLASSIC, {"range": "fd00::/64"}], "gateway": "10.0.0.1"})
        assert result["ips"] == [
            {"address": "10.0.0.2/24", "gateway": "10.0.0.1"},
            {"address": "fd00::1/64"},
        ]


async def test_routes_and_dns_are_passed_on() -> None:
    routes = [{"dst": "10.9.0.0/16", "gw": "10.0.0.254"}]
    dns = {"nameservers": ["10.0.0.53"], "domain": "example.io", "search": ["a"], "options": ["ndots:1"]}
    async with calling() as node:
        result = await node.add(CLASSIC | {"routes": routes, "dns": dns})
        assert (result["routes"], result["dns"]) == (routes, dns)


async def test_addresses_are_added_after_the_dynamic_ones_each_with_its_own_gateway() -> None:
    static = [{"address": "192.0.2.9/28", "gateway": "192.0.2.1"}]
    async with calling() as node:
        result = await node.add(CLASSIC | {"addresses": static, "gateway": "10.0.0.254"})
        assert result["ips"] == [{"address": "10.0.0.1/24", "gateway": "10.0.0.254"}, *static]


async def test_cni_args_may_ask_for_an_address_and_its_gateway() -> None:
    async with calling() as node:
        result = await node.add(CLASSIC, arguments=";IP=192.0.2.9/28;GATEWAY=192.0.2.1")
        assert result["ips"][1] == {"address": "192.0.2.9/28", "gateway": "192.0.2.1"}


async def test_enable_overlapping_ranges_reserves_by_default() -> None:
    async with calling() as node:
        await node.add(CLASSIC)
        assert await node.bench.reserved() == {"10.0.0.1": "default/pod-of-c1"}
    async with calling() as node:
        await node.add(CLASSIC | {"enable_overlapping_ranges": False})
        assert await node.bench.reserved() == {}


@pytest.mark.parametrize("size", ["/24", "24", 24])
async def test_node_slice_size_asks_for_slices_however_it_is_spelled(size: str | int) -> None:
    bench = Bench()
    ipam = {"range": "10.0.0.0/16", "node_slice_size": size}
    await bench.cut(ipam, "10.0.3.0/24")
    async with calling(bench) as node:
        assert await node.addresses_of(ipam) == ["10.0.3.1/16"]


async def test_ip_ranges_may_have_a_slice_size_each() -> None:
    bench = Bench()
    ipam = {"ipRanges": [SLICES, {"range": "fd00:1::/48", "node_slice_size": "/64"}], "network_name": "blue"}
    await bench.cut(ipam, "10.0.3.0/24")
    await bench.cut(ipam, "fd00:1:0:7::/64", place=1)
    async with calling(bench) as node:
        assert await node.addresses_of(ipam) == ["10.0.3.1/16", "fd00:1:0:7::1/48"]


async def test_fast_ipam_false_means_classic_whatever_else_is_there_and_true_needs_a_slice_size() -> None:
    async with calling() as node:
        assert await node.addresses_of(SLICES | {"fast_ipam": False}) == ["10.0.0.1/16"]
        refused, words = await node.refused({"range": "10.0.0.0/16", "fast_ipam": True})
        assert (refused, "node_slice_size" in words) == (INVALID_CONFIG, True)


async def test_network_name_keeps_networks_of_one_range_apart() -> None:
    async with calling() as node:
        for name in ("red", "blue"):
            assert await node.addresses_of(CLASSIC | {"network_name": name}, f"c-{name}") == ["10.0.0.1/24"]
        assert set(await node.bench.pool("red-10.0.0.0-24")) == {"1"}
        assert set(await node.bench.reserved()) == {"red-10.0.0.1", "blue-10.0.0.1"}


MEANT_FOR_OTHERS = {
    "leader_lease_duration": 1500,
    "leader_renew_deadline": 1000,
    "leader_retry_period": 500,
    "log_file": "/tmp/whereabouts.log",  # noqa: S108 - it is not written
    "log_level": "debug",
    "kubernetes": {"kubeconfig": "/etc/cni/net.d/whereabouts.d/whereabouts.kubeconfig"},
    "reconciler_cron_expression": "30 4 * * *",
    "datastore": "etcd",
    "etcd_host": "10.0.0.9:2379",
    "etcd_username": "root",
    "etcd_password": "secret",
    "etcd_key_file": "/k",
    "etcd_cert_file": "/c",
    "etcd_ca_cert_file": "/ca",
    "sleep_for_race": 3,
}


@pytest.mark.parametrize("key", MEANT_FOR_OTHERS)
async def test_a_key_that_has_no_use_here_is_accepted(key: str) -> None:
    assert await first(CLASSIC | {key: MEANT_FOR_OTHERS[key]}) == ["10.0.0.1/24"]


async def test_configuration_path_names_a_file_that_fills_what_is_empty(tmp_path: Path) -> None:
    flat = tmp_path / "whereabouts.conf"
    flat.write_text(json.dumps({"range": "10.5.0.0/24", "gateway": "10.5.0.1", "network_name": "flat"}))
    ipam = {"configuration_path": str(flat), "network_name": "inline"}
    async with calling() as node:
        assert await node.addresses_of(ipam) == ["10.5.0.2/24"]
        assert set(await node.bench.pool("inline-10.5.0.0-24")) == {"2"}
        flat.write_text(json.dumps({"range": "10.60.0.0/24"}))
        assert await node.addresses_of(ipam, "c2") == ["10.60.0.1/24"], "it is read again when it changed"
        flat.unlink()
        refused, words = await node.refused(ipam, sandbox="c3")
        assert (refused, "has no range" in words) == (INVALID_CONFIG, True)
        await node.delete(ipam, "c2")
        assert await node.bench.pool("inline-10.60.0.0-24") == {}, "a DEL goes by what is known"


async def test_the_flat_file_of_whereabouts_is_found_where_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flat = tmp_path / "whereabouts.conf"
    flat.write_text(json.dumps({"range": "10.5.0.0/24"}))
    paths = (str(tmp_path / "absent" / "x"), str(flat))
    monkeypatch.setattr("podtide.cni.network_config.FLAT_FILE_PATHS", paths)
    async with calling() as node:
        assert await node.addresses_of({}) == ["10.5.0.1/24"]
        node.pool.grant("10.1.0.5")
        assert await node.addresses_of({"type": "podtide"}, "c2") == ["10.1.0.5/16"], (
            "the node's pool is not its"
        )


@pytest.mark.parametrize(
    ("inline", "guarded"),
    [({}, True), ({"enable_overlapping_ranges": False}, False)],
    ids=["unsaid", "false"],
)
async def test_agent_and_controller_agree_whether_a_network_is_guarded_whatever_the_flat_file_says(
    tmp_path: Path, inline: dict[str, Any], guarded: bool
) -> None:
    """Whereabouts ignores `enable_overlapping_ranges` there, and the controller does not see the file."""
    flat = tmp_path / "whereabouts.conf"
    flat.write_text(json.dumps({"enable_overlapping_ranges": not guarded}))
    ipam = CLASSIC | inline | {"configuration_path": str(flat)}
    async with calling() as node:
        assert await node.addresses_of(ipam) == ["10.0.0.1/24"]
        assert bool(await node.bench.reserved()) is guarded
    spec = NetworkAttachmentDefinitionSpec(config=configuration(ipam).decode())
    seen = read_attachment(NetworkAttachmentDefinition(metadata=ObjectMeta(name="n"), spec=spec))
    assert isinstance(seen, AttachedNetwork)
    assert seen.network.guarded is guarded


async def test_a_misspelt_key_of_the_flat_file_is_refused(tmp_path: Path) -> None:
    flat = tmp_path / "whereabouts.conf"
    flat.write_text(json.dumps({"rnage": "10.5.0.0/24"}))
    async with calling() as node:
        node.pool.grant("10.1.0.5")
        refused, words = await node.refused({"type": "podtide", "configuration_path": str(flat)})
        assert (refused, "flat file has no key 'rnage' (did you mean 'range'?)" in words) == (
            INVALID_CONFIG,
            True,
        )


async def test_a_misspelt_range_is_not_served_from_the_nodes_pool() -> None:
    async with calling() as node:
        node.pool.grant("10.1.0.5")
        refused, words = await node.refused({"type": "podtide", "rnage": "10.0.0.0/24"})
        assert (refused, "ipam has no key 'rnage' (did you mean 'range'?)" in words) == (INVALID_CONFIG, True)
        await node.delete({"type": "podtide", "rnage": "10.0.0.0/24"})


@pytest.mark.parametrize("path", ["directory", "with\0nul"])
async def test_a_flat_file_that_is_none_is_a_wrong_configuration(tmp_path: Path, path: str) -> None:
    (tmp_path / "directory").mkdir()
    async with calling() as node:
        refused, words = await node.refused(CLASSIC | {"configuration_path": str(tmp_path / path)})
        assert (refused, "flat file" in words) == (INVALID_CONFIG, True)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no range": ({}, "has no range"),
    "range without prefix": ({"range": "10.0.0.0"}, "has no prefix length"),
    "range of rubbish": ({"range": "ten/24"}, "is not a valid IP address"),
    "range of two families": ({"range": "10.0.0.1-fd00::5/64"}, "use one family"),
    "start of another family": (CLASSIC | {"range_start": "fd00::5"}, "use one family"),
    "exclude of rubbish": (CLASSIC | {"exclude": ["ten"]}, "exclude"),
    "exclude with leading zeroes": (CLASSIC | {"exclude": ["010.0.0.1"]}, "write 10.0.0.1"),
    "misspelt key": (CLASSIC | {"exlcude": ["10.0.0.1"]}, "did you mean 'exclude'?"),
    "misspelt key of a further range": (
        CLASSIC | {"ipRanges": [{"range": "10.1.0.0/24", "rangeEnd": "10.1.0.9"}]},
        "has no key 'ipRanges[0].rangeEnd' (did you mean 'range_end'?)",
    ),
    "gateway of rubbish": (CLASSIC | {"gateway": "ten"}, "gateway"),
    "address without prefix": (CLASSIC | {"addresses": [{"address": "10.0.0.9"}]}, "addresses"),
    "route of rubbish": (CLASSIC | {"routes": [{"dst": "ten"}]}, "routes"),
    "slice larger than range": (CLASSIC | {"node_slice_size": "/16"}, "larger than its range"),
    "slice without addresses": (CLASSIC | {"node_slice_size": "/31"}, "leaves no usable address"),
    "slice of rubbish": (CLASSIC | {"node_slice_size": "many"}, "is not a valid prefix length"),
    "network_name with capitals": (CLASSIC | {"network_name": "Blue"}, "cannot be part of an object's name"),
    "network_name that makes no name": (CLASSIC | {"network_name": "a..b"}, "is not a valid Kubernetes name"),
    "network_name too long": (CLASSIC | {"network_name": "a" * 250}, "shorten network_name"),
    "one range twice": ({"ipRanges": [CLASSIC, {"range": "10.0.0.9/24"}]}, "has the range 10.0.0.0/24 twice"),
    "wrong type of value": (CLASSIC | {"exclude": 5}, "exclude"),
    "static gateway of rubbish": (
        CLASSIC | {"addresses": [{"address": "192.0.2.9/28", "gateway": "ten"}]},
        "addresses: gateway: 'ten' is not a valid IP address",
    ),
    "dns that is no object": (CLASSIC | {"dns": "10.0.0.53"}, "$.dns"),
    "dns with one nameserver for many": (
        CLASSIC | {"dns": {"nameservers": "10.0.0.53"}},
        "$.dns.nameservers",
    ),
    "fast_ipam of rubbish": (SLICES | {"fast_ipam": "yes"}, "$.fast_ipam"),
    "enable_overlapping_ranges of rubbish": (
        CLASSIC | {"enable_overlapping_ranges": "no"},
        "$.enable_overlapping_ranges",
    ),
    "end of a further range of another family": (
        CLASSIC | {"ipRanges": [{"range": "10.1.0.0/24", "range_end": "fd00::5"}]},
        "use one family",
    ),
    "slice of a further range larger than it": (
        SLICES | {"ipRanges": [{"range": "10.1.0.0/24", "node_slice_size": "/20"}]},
        "larger than its range 10.1.0.0/24",
    ),
    "slice of a further range of rubbish": (
        SLICES | {"ipRanges": [{"range": "10.1.0.0/24", "node_slice_size": "many"}]},
        "'many' is not a valid prefix length",
    ),
    **{
        f"{key} of {value!r}": (CLASSIC | {key: value}, f"$.{key}")
        for key in ("leader_lease_duration", "leader_renew_deadline", "leader_retry_period")
        for value in (-1, "soon")
    },
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_configuration_is_code_7_with_a_sentence_and_takes_nothing(name: str) -> None:
    ipam, expected = WRONG[name]
    async with calling() as node:
        refused, words = await node.refused(ipam)
        assert refused == INVALID_CONFIG
        assert expected in words
        assert not [call for call in node.line.calls if not call.endswith("Node")]
        await node.delete(ipam)


async def test_status_of_a_secondary_network_needs_no_node_pool() -> None:
    async with calling() as node:
        node.pool.ready = False
        assert await node.call("STATUS", configuration(CLASSIC)) == Answer(0)
        assert (await node.call("STATUS", configuration({"type": "podtide"}))).exit_status == 1


async def test_check_confirms_what_add_answered() -> None:
    async with calling() as node:
        result = await node.add(CLASSIC)
        checked = configuration(CLASSIC, prevResult=result)
        assert await node.call("CHECK", checked) == Answer(0)
        other = configuration(CLASSIC, prevResult={"ips": [{"address": "10.0.0.77/24"}]})
        assert b"prevResult lacks 10.0.0.1" in (await node.call("CHECK", other)).output
        unknown = await node.call("CHECK", checked, "c2")
        assert json.loads(unknown.output)["code"] == 3


async def test_gc_frees_what_is_not_alive_of_that_network() -> None:
    async with calling() as node:
        for sandbox in ("c1", "c2"):
            await node.add(CLASSIC, sandbox)
        alive: dict[str, Any] = {"cni.dev/valid-attachments": [{"containerID": "c2", "ifname": "net1"}]}
        assert await node.call("GC", configuration(CLASSIC, "another", **alive)) == Answer(0)
        assert len(await node.bench.pool("10.0.0.0-24")) == 2
        assert await node.call("GC", configuration(CLASSIC, **alive)) == Answer(0)
        assert [entry.id for entry in (await node.bench.pool("10.0.0.0-24")).values()] == ["c2"]


NOBODY_LIVES: dict[str, Any] = {"cni.dev/valid-attachments": []}


@pytest.mark.parametrize("name", ["MyNet", "My_Net"])
@pytest.mark.parametrize("guarded", [True, False])
async def test_a_configuration_may_have_a_name_that_kubernetes_does_not_take(
    name: str, guarded: bool
) -> None:
    stdin = configuration(CLASSIC | {"enable_overlapping_ranges": guarded}, name, **NOBODY_LIVES)
    async with calling() as node:
        for verb in ("DEL", "GC"):
            assert await node.call(verb, stdin) == Answer(0), "before there is anything"
        for freeing in ("DEL", "GC"):
            assert json.loads((await node.call("ADD", stdin)).output)["ips"][0]["address"] == "10.0.0.1/24"
            assert await node.call(freeing, stdin) == Answer(0)
            assert await node.bench.pool("10.0.0.0-24") == {}


@pytest.mark.parametrize("name", ["MyNet", "My_Net"])
async def test_a_sliced_configuration_may_have_a_name_that_kubernetes_does_not_take(name: str) -> None:
    stdin = configuration(SLICES, name, **NOBODY_LIVES)
    async with calling() as node:
        for verb in ("DEL", "GC"):
            assert await node.call(verb, stdin) == Answer(0), "before there is anything"
        early = json.loads((await node.call("ADD", stdin)).output)
        assert early["code"] == TRY_AGAIN_LATER
        assert "is not cut into slices yet" in early["msg"]
        await node.bench.cut(SLICES, "10.0.3.0/24")
        await asyncio.sleep(2)  # that there is none is not asked over and over
        for freeing in ("DEL", "GC"):
            assert json.loads((await node.call("ADD", stdin)).output)["ips"][0]["address"] == "10.0.3.1/16"
            assert await node.call(freeing, stdin) == Answer(0)
            assert await node.bench.pool("10.0.0.0-16-node-a") == {}


async def deleted(node: NodeCalls, stdin: bytes) -> bool:
    assert await node.call("DEL", stdin) == Answer(0)
    return await node.bench.pool("10.0.0.0-24") == {}


@pytest.mark.parametrize(
    "stdin",
    [
        configuration(CLASSIC, prevResult={"ips": [{"address": "10.0.0.1/24"}]}),
        configuration({"range": "rubbish"}),
        configuration({"type": "podtide"}),
        b'{"cniVersion": "1.1.0", "ipam": 5}',
        b'{"cniVersion": "1.1.0"}',
    ],
    ids=["with prevResult", "unusable range", "range gone", "no ipam object", "no ipam"],
)
async def test_a_del_lets_go_whatever_became_of_the_configuration(stdin: bytes) -> None:
    async with calling() as node:
        await node.add(CLASSIC)
        assert await deleted(node, stdin)


async def test_a_del_of_the_nodes_pool_asks_nothing_of_the_cluster() -> None:
    async with calling() as node:
        node.pool.grant("10.1.0.5")
        await node.add({"type": "podtide"})
        node.line.forget()
        await node.delete({"type": "podtide"})
        assert not node.line.calls
        assert node.pool.held() == {}
