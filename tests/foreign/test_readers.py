"""Every reader of text that others write: out of it comes a value, or the error that it documents, and nothing else."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.calling import Journal, NoNotes
from agent.pool_addresses import PoolAddresses
from examples import examples
from foreign.hostile import DEEP, as_bytes, documents, fragments, plain_texts, planted
from podtide.agent.api.cns_api import CnsApi, several
from podtide.agent.api.plugin_protocol import decode_call
from podtide.agent.networks.configuration_cache import may_have_ranges, read_for_deletion
from podtide.agent.pool.cns_state import parse_cns_state
from podtide.agent.request.node_config import complaints, networks_of, node_scaler_of, subnets_of
from podtide.cluster.kubernetes.access import InvalidAccess
from podtide.cluster.kubernetes.answers import read_status
from podtide.cluster.kubernetes.decoding import decode_event, decode_item, decode_page
from podtide.cluster.kubernetes.kubeconfig_file import read_files
from podtide.cluster.port import ClusterError
from podtide.cluster.served.bodies import parsed
from podtide.cluster.served.statuses import BadRequest
from podtide.cni.attachments import previous_addresses, valid_attachments
from podtide.cni.config_text import with_ipam_type
from podtide.cni.conflist import is_podtide_conflist
from podtide.cni.errors import Undecodable
from podtide.cni.ipam_config import parse_config
from podtide.controller.repair_schedule import check_expression
from podtide.controller.subnets.overrides import configure, default_bounds
from podtide.core.errors import InvalidInput
from podtide.core.exact import exact
from podtide.core.ranges import parse_address, parse_network
from podtide.networks.attachments import AttachedNetwork, read_attachment
from podtide.networks.audit_picture import draw_networks
from podtide.networks.hints import hints_in
from podtide.networks.pods import NETWORK_STATUS_ANNOTATIONS, addresses_shown
from podtide.resources.base import ObjectMeta, Resource
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.codec import InvalidObject, decode, encode
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import STATEMENT_ANNOTATION, WAITING_PODS_ANNOTATION, waiting_pods_in
from podtide.resources.network_attachment import NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.node_slice_pool import (
    NodeSliceAllocation,
    NodeSlicePool,
    NodeSlicePoolSpec,
    NodeSlicePoolStatus,
)
from podtide.resources.overlapping_range import (
    OverlappingRangeIPReservation,
    OverlappingRangeIPReservationSpec,
)
from podtide.resources.pod import Pod
from podtide.resources.statement_annotation import number_in, statement_in
from podtide.resources.timestamps import InvalidTimestamp, to_wall_seconds
from podtide.runtime import virtual_time
from podtide.runtime.clock import LoopClock
from podtide.runtime.foreign_json import UnreadableJson, decode_json
from podtide.runtime.settings import load_settings

SETTINGS = load_settings({}, {})

NETWORK_STATUS = [{"name": "blue", "interface": "net1", "ips": ["10.0.0.5"], "dns": {}}]
STATEMENT = {
    "demand": 20, "batch": 16, "buffer": 0.5, "max": 250, "primaries": 1, "request": 31, "number": 1750, "top": 16,
}  # fmt: skip
CNI_CONFIG = {
    "cniVersion": "1.0.0",
    "name": "blue",
    "type": "macvlan",
    "ipam": {
        "type": "whereabouts",
        "range": "10.0.0.0/24",
        "exclude": ["10.0.0.1/32"],
        "node_slice_size": "/28",
        "ipRanges": [{"range": "fd00::/64", "range_start": "fd00::5"}],
        "routes": [{"dst": "0.0.0.0/0"}],
        "addresses": [{"address": "10.0.0.9/24"}],
        "reconciler_cron_expression": "30 4 * * *",
    },
    "prevResult": {"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.5/24"}]},
    "cni.dev/valid-attachments": [{"containerID": "one", "ifname": "eth0"}],
}
CONFLIST = {"cniVersion": "1.0.0", "name": "blue", "plugins": [CNI_CONFIG]}
FLAT_FILE = {
    "datastore": "kubernetes",
    "kubernetes": {"kubeconfig": "/etc/cni/net.d/whereabouts.d/whereabouts.kubeconfig"},
    "reconciler_cron_expression": "30 4 * * *",
    "network_name": "red",
    "gateway": "10.0.0.1",
    "dns": {"nameservers": ["10.0.0.2"]},
    "node_slice_size": "/28",
}
CNS_STATE = {
    "Endpoints": {
        "x": {
            "PodName": "p",
            "PodNamespace": "d",
            "IfnameToIPMap": {
                "eth0": {"IPv4": [{"IP": "10.0.0.8", "Mask": "//8AAA=="}], "IPv6": [{"IP": "fd00::8"}]}
            },
        }
    }
}
CNS_REQUEST = {
    "desiredIPAddresses": ["10.0.0.5"],
    "podInterfaceID": "one-eth0",
    "infraContainerID": "one",
    "orchestratorContext": {"podName": "web", "podNamespace": "shop"},
    "ifname": "eth0",
}
KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "here",
    "clusters": [{"name": "here", "cluster": {"server": "https://127.0.0.1:6443"}}],
    "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
    "users": [{"name": "me", "user": {"token": "secret"}}],
}
OBJECTS: dict[type[Resource], dict[str, Any]] = {
    Pod: {"metadata": {"name": "a", "resourceVersion": "1", "annotations": {"a": "b"}}, "spec": {"nodeName": "n"}},
    Node: {"metadata": {"name": "a", "resourceVersion": "1", "labels": {"a": "b"}}},
    IPPool: {
        "metadata": {"name": "a", "resourceVersion": "1"},
        "spec": {"range": "10.0.0.0/24", "allocations": {"5": {"id": "x", "podref": "a/b"}}},
    },
    NodeSlicePool: {
        "metadata": {"name": "a", "resourceVersion": "1"},
        "spec": {"range": "10.0.0.0/16", "sliceSize": "/24"},
        "status": {"allocations": [{"nodeName": "n", "sliceRange": "10.0.0.0/24"}]},
    },
    NetworkAttachmentDefinition: {
        "metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"config": "{}"},
    },
    NodeNetworkConfig: {
        "metadata": {"name": "a", "resourceVersion": "1"},
        "spec": {"requestedIPCount": 16, "ipsNotInUse": ["x"]},
        "status": {
            "scaler": {"batchSize": 16, "maxIPCount": 250},
            "networkContainers": [{"id": "x", "primaryIP": "10.0.0.4", "version": 1, "ipAssignments": [{"name": "n", "ip": "10.0.0.5"}]}],
        },
    },
    ClusterSubnet: {
        "metadata": {"name": "a", "resourceVersion": "1"},
        "spec": {"scaler": {"batch": 16, "buffer": 0.5, "minBatch": 1, "thresholds": {"lower": 0.8, "upper": 0.9}}},
        "status": {"scaler": {"batch": 16, "buffer": 0.5, "top": 16}, "capacity": 250},
    },
    ClusterSubnetState: {
        "metadata": {"name": "a", "resourceVersion": "1"},
        "status": {"exhausted": True, "timestamp": "2026-11-05T12:00:00Z"},
    },
    OverlappingRangeIPReservation: {
        "metadata": {"name": "10.0.0.5", "resourceVersion": "1"},
        "spec": {"podref": "a/b", "ifname": "net1", "containerid": "c", "poduid": "u"},
    },
    Lease: {"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"leaseDurationSeconds": 15, "renewTime": "2026-11-05T12:00:00.000000Z"}},
}  # fmt: skip


CONFIG_READERS: tuple[Callable[[bytes], object], ...] = (
    parse_config,
    valid_attachments,
    previous_addresses,
    read_for_deletion,
    may_have_ranges,
)


def only(errors: type[Exception] | tuple[type[Exception], ...], read: Callable[[], object]) -> None:
    """It reads, or raises one of these with a line for people that does not quote all of what was sent."""
    try:
        read()
    except errors as error:
        words = str(error)
        assert words
        assert len(words.splitlines()) == 1


def show(text: str) -> object:
    """What a pod with this network status is taken to have."""
    return addresses_shown(
        Pod(metadata=ObjectMeta(name="a", annotations={NETWORK_STATUS_ANNOTATIONS[0]: text}))
    )


def define(text: str) -> object:
    """What a definition with this configuration is taken for."""
    spec = NetworkAttachmentDefinitionSpec(config=text)
    return read_attachment(
        NetworkAttachmentDefinition(metadata=ObjectMeta(name="a", namespace="b"), spec=spec)
    )


def migrated(text: str) -> None:
    """A definition of a network of Whereabouts becomes one of podtide, and is the same network."""
    before = define(text)
    if isinstance(before, AttachedNetwork) and before.config.type == "whereabouts":
        after = define(with_ipam_type(text, "whereabouts", "podtide"))
        assert isinstance(after, AttachedNetwork)
        assert after.network == before.network


def read_kubeconfig(path: Path, text: str) -> object:
    """What a kubeconfig of this text says."""
    path.write_bytes(as_bytes(text))
    return read_files([path])


def written_back(kind: type[Resource], body: bytes) -> object:
    """An object as it is replaced by one who changes nothing in it."""
    return encode(decode(kind, body))


@pytest.mark.slow
def test_nothing_that_is_nested_deeply_breaks_a_reader(tmp_path: Path) -> None:
    """Without hypothesis, which lets Python go deeper than it does by itself."""
    for text in planted(NETWORK_STATUS):
        show(text)
    for text in planted(STATEMENT):
        number_in({STATEMENT_ANNOTATION: text})
    for valid in (CNI_CONFIG, CONFLIST):
        for text in planted(valid):
            define(text)
            is_podtide_conflist(as_bytes(text))
            for read in CONFIG_READERS:
                only(InvalidInput, partial(read, as_bytes(text)))
            migrated(text)
            hints_in(text)
    for text in planted(FLAT_FILE):
        only(InvalidInput, partial(parse_config, json.dumps(CNI_CONFIG), as_bytes(text)))
    for text in DEEP:
        only(InvalidAccess, partial(read_kubeconfig, tmp_path / "kubeconfig", text))
        only(BadRequest, partial(parsed, as_bytes(text)))
        only(UnreadableJson, partial(decode_json, text))
    only(UnreadableJson, partial(decode_json, "[" * 1_000_000))


@pytest.mark.slow
def test_nothing_that_is_nested_deeply_in_an_object_breaks_who_reads_it_or_writes_it_back() -> None:
    """Without hypothesis, for the same reason."""
    for kind, document in OBJECTS.items():
        for text in planted(document):
            only(ClusterError, partial(decode_item, kind, as_bytes(text), "get it"))
            line = b'{"type": "ADDED", "object": %b}' % as_bytes(text)
            only(ClusterError, partial(decode_event, kind, line, "watch them"))
        for depth in (
            90,
            101,
            *range(800, 1000),
            1200,
        ):  # somewhere there it can just be skipped, and not be read
            text = f'{json.dumps(document)[:-1]}, "unknown": {"[" * depth}{"]" * depth}}}'
            only(InvalidObject, partial(written_back, kind, as_bytes(text)))


@given(documents(NETWORK_STATUS))
def test_network_status_tells_addresses_or_nothing(text: str) -> None:
    show(text)


@given(documents(STATEMENT), plain_texts)
def test_annotations_of_a_node_network_config_are_read_or_count_as_absent(text: str, waiting: str) -> None:
    annotations = {STATEMENT_ANNOTATION: text, WAITING_PODS_ANNOTATION: waiting}
    statement_in(annotations, 31)
    assert number_in(annotations) >= 0
    assert waiting_pods_in(annotations) >= 0


@given(documents(CNI_CONFIG) | documents(CONFLIST))
def test_a_network_attachment_definition_is_a_network_or_not_ours_or_unreadable(text: str) -> None:
    define(text)


@pytest.mark.parametrize("read", CONFIG_READERS)
@given(documents(CNI_CONFIG) | documents(CONFLIST))
def test_a_cni_configuration_is_understood_or_refused(read: Callable[[bytes], object], text: str) -> None:
    only(InvalidInput, lambda: read(as_bytes(text)))


@given(documents(FLAT_FILE))
def test_a_flat_file_is_understood_or_refused(text: str) -> None:
    only(InvalidInput, lambda: parse_config(json.dumps(CNI_CONFIG), as_bytes(text)))


@given(documents(CNI_CONFIG) | documents(CONFLIST))
def test_what_is_a_network_of_whereabouts_is_one_of_podtide_with_another_type(text: str) -> None:
    migrated(text)


@given(documents(CNI_CONFIG) | plain_texts | fragments)
def test_any_text_has_words_and_addresses_or_none(text: str) -> None:
    found = hints_in(text)
    found.are_of(frozenset({"blue"}), parse_network("10.0.0.0/8"))
    found.are_of(frozenset(), parse_network("fd00::/8"))


@given(documents(CONFLIST))
def test_a_conflist_is_ours_or_not(text: str) -> None:
    is_podtide_conflist(as_bytes(text))


@given(st.binary() | fragments.map(as_bytes))
def test_a_call_of_the_plugin_is_decoded_or_refused(body: bytes) -> None:
    for text in (body, b"CNI_COMMAND=ADD\0" + body, b"CNI_ARGS=a\0\0" + body):
        only(InvalidInput, partial(decode_call, text))


@given(documents(CNS_STATE))
def test_a_state_file_of_cns_is_read_or_refused(text: str) -> None:
    only(InvalidInput, partial(parse_cns_state, as_bytes(text)))


@pytest.mark.parametrize("text", [*DEEP, *planted(CNS_STATE)])
def test_a_state_file_of_cns_may_be_nested_deeply(text: str) -> None:
    only(InvalidInput, partial(parse_cns_state, as_bytes(text)))


@given(documents(CNS_REQUEST))
def test_a_request_of_the_cns_api_is_answered_or_undecodable(text: str) -> None:
    async def ask() -> None:
        clock = LoopClock()
        api = CnsApi(PoolAddresses(clock), NoNotes(), clock=clock, log=Journal().log)
        only(Undecodable, lambda: api.release(as_bytes(text), arrived=0.0))
        only(Undecodable, lambda: api.show(as_bytes(text)))
        with suppress(Undecodable, TimeoutError):  # one that waits for an address was understood
            async with asyncio.timeout(1):
                await api.request(as_bytes(text), several, arrived=0.0)

    virtual_time.run(ask())


@examples(quick=5)  # YAML takes seconds for the longest of these
@given(documents(KUBECONFIG))
def test_a_kubeconfig_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "kubeconfig"
    only(InvalidAccess, lambda: read_kubeconfig(path, text))


@pytest.mark.parametrize("kind", OBJECTS, ids=lambda kind: kind.__name__)
@given(st.data())
def test_an_object_is_read_or_the_answer_is_unavailable(kind: type[Resource], data: st.DataObject) -> None:
    text = data.draw(documents(OBJECTS[kind]))
    body = as_bytes(text)
    only(InvalidObject, lambda: written_back(kind, body))
    only(ClusterError, lambda: decode_item(kind, body, "get it"))
    page = b'{"metadata": {"resourceVersion": "1"}, "items": [%b]}' % body
    only(ClusterError, lambda: decode_page(kind, page, "list them"))
    for change in (b"ADDED", b"BOOKMARK", b"ERROR", b"NONE"):
        line = b'{"type": "%b", "object": %b}' % (change, body)
        only(ClusterError, partial(decode_event, kind, line, "watch them"))
    read_status(body)


@given(plain_texts, plain_texts, plain_texts, plain_texts)
def test_pools_slices_and_reservations_with_any_text_make_a_picture(
    network: str, key: str, podref: str, name: str
) -> None:
    place = ObjectMeta(name=name, namespace="kube-system")
    entry = IPAllocation(id=podref, podref=podref)
    slices = NodeSlicePoolStatus(allocations=[NodeSliceAllocation(node_name=name, slice_range=network)])
    reserved = OverlappingRangeIPReservationSpec(podref=podref)
    definition = json.dumps(CNI_CONFIG)
    draw_networks(
        [
            NetworkAttachmentDefinition(
                metadata=place, spec=NetworkAttachmentDefinitionSpec(config=definition)
            )
        ],
        pools=[IPPool(metadata=place, spec=IPPoolSpec(range=network, allocations={key: entry}))],
        reservations=[OverlappingRangeIPReservation(metadata=place, spec=reserved)],
        slice_pools=[
            NodeSlicePool(
                metadata=place, spec=NodeSlicePoolSpec(range=network, slice_size=key), status=slices
            )
        ],
    )


@given(st.data())
def test_a_node_network_config_that_can_be_decoded_can_be_used(data: st.DataObject) -> None:
    text = data.draw(documents(OBJECTS[NodeNetworkConfig]))
    try:
        config = decode(NodeNetworkConfig, as_bytes(text))
    except InvalidObject:
        return
    subnets_of(networks_of(config))
    node_scaler_of(config)
    complaints(config)


@given(st.data())
def test_a_cluster_subnet_that_can_be_decoded_is_in_force_or_refused(data: st.DataObject) -> None:
    text = data.draw(documents(OBJECTS[ClusterSubnet]))
    try:
        subnet = decode(ClusterSubnet, as_bytes(text))
    except InvalidObject:
        return
    configure(subnet.spec.scaler, SETTINGS, default_bounds(SETTINGS))


@given(plain_texts)
def test_small_texts_are_read_or_refused(text: str) -> None:
    only(InvalidInput, lambda: parse_address(text))
    only(InvalidInput, lambda: parse_network(text))
    only(InvalidInput, lambda: exact(text))
    only(InvalidInput, lambda: check_expression(text))
    only(InvalidTimestamp, lambda: to_wall_seconds(text))


@examples(quick=5)  # as above
@given(fragments)
def test_a_body_for_the_embedded_cluster_is_read_or_a_bad_request(text: str) -> None:
    only(BadRequest, lambda: parsed(as_bytes(text)))


@given(fragments)
def test_json_of_others_is_a_value_or_unreadable(text: str) -> None:
    only(UnreadableJson, lambda: decode_json(text))
    only(UnreadableJson, lambda: decode_json(as_bytes(text)))
