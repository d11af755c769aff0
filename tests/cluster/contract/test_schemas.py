"""What a kind's CRD has the API server refuse and fill in, whichever way an object is written."""

from typing import Any, ClassVar

import pytest
from msgspec import field
from msgspec.structs import replace

from cluster.contract.harness import MANAGER, ClusterUnderTest, OpenCluster
from podtide.cluster.port import Invalid
from podtide.resources.base import Api, Part, Resource
from podtide.resources.conditions import Condition, ConditionStatus
from podtide.resources.node_network_config import (
    AssignmentMode,
    ConfigStatus,
    ContainerStatus,
    NetworkContainer,
    NodeNetworkConfig,
    NodeNetworkConfigSpec,
    NodeNetworkConfigStatus,
)
from podtide.resources.node_slice_pool import (
    NodeSliceAllocation,
    NodeSlicePool,
    NodeSlicePoolSpec,
    NodeSlicePoolStatus,
)


class SparseStatus(Part, frozen=True, kw_only=True):
    """A status of which only the containers are ever said."""

    network_containers: list[dict[str, Any]] = field(default_factory=list)
    assigned_ip_count: int | None = field(default=None, name="assignedIPCount")


class SparseConfig(Resource, frozen=True, kw_only=True):
    """A NodeNetworkConfig as another program may write it: without the fields that podtide's always has."""

    api: ClassVar[Api] = NodeNetworkConfig.api

    spec: dict[str, Any] | None = None
    status: SparseStatus | None = None


def slices(
    it: ClusterUnderTest, *, cidr: str = "10.0.0.0/16", size: str = "/24", name: str = "net"
) -> NodeSlicePool:
    return NodeSlicePool(metadata=it.metadata(name), spec=NodeSlicePoolSpec(range=cidr, slice_size=size))


def condition(*, status: str = "True", since: str = "2026-11-05T12:00:00Z") -> Condition:
    return Condition(
        type="Ready",
        status=ConditionStatus(status),
        last_transition_time=since,
        reason="Because",
        message="It is.",
    )


@pytest.mark.parametrize(
    "cidr",
    [
        "nonsense",
        "",
        "10.0.0.0",
        "10.0.0.0/",
        "10.0.0.0/33",
        "10.0.0.0/-1",
        "10.0.0.0/255.255.0.0",
        "10.0.0/8",
        "fd00::/129",
        "fe80::1%eth0/64",
        " 10.0.0.0/8",
        "10.0.0.0/8\n",
    ],
)
async def test_what_is_no_cidr_is_invalid_where_one_must_be(open_cluster: OpenCluster, cidr: str) -> None:
    async with open_cluster() as it:
        with pytest.raises(Invalid):
            await it.create(slices(it, cidr=cidr))


@pytest.mark.parametrize(
    "cidr",
    ["10.0.0.5/8", "0.0.0.0/0", "010.0.00.000/08", "fd00::/64", "::/128", "0fd0::1/8", "::ffff:10.0.0.0/120"],
)
async def test_a_cidr_is_allowed_with_bits_beyond_its_prefix_and_with_leading_zeros(
    open_cluster: OpenCluster, cidr: str
) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(slices(it, cidr=cidr))
        assert made.spec.range == cidr


async def test_text_that_does_not_match_its_pattern_is_invalid(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        for size in ("zz", "", "/129", "24 ", "/24\n", "//24"):
            with pytest.raises(Invalid):
                await it.create(slices(it, size=size))
        await it.create(slices(it, size="24", name="bare"), slices(it, size="/128", name="slashed"))


@pytest.mark.parametrize(
    "status",
    [
        NodeNetworkConfigStatus(status=ConfigStatus("Bogus")),
        NodeNetworkConfigStatus(
            network_containers=[NetworkContainer(id="a", assignment_mode=AssignmentMode("guessed"))]
        ),
        NodeNetworkConfigStatus(
            network_containers=[NetworkContainer(id="a"), NetworkContainer(status=ContainerStatus("Fine"))]
        ),
        NodeNetworkConfigStatus(conditions=[condition(status="Maybe")]),
        NodeNetworkConfigStatus(conditions=[condition(since="yesterday")]),
        NodeNetworkConfigStatus(conditions=[condition(since="2026-11-05")]),
        NodeNetworkConfigStatus(conditions=[condition(since="2026-13-05T12:00:00Z")]),
        NodeNetworkConfigStatus(conditions=[condition(since="2026-11-05T12:00:00")]),
    ],
    ids=str,
)
async def test_a_word_that_is_none_of_its_enum_is_invalid_and_so_is_a_time_that_is_none(
    open_cluster: OpenCluster, status: NodeNetworkConfigStatus
) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config())
        with pytest.raises(Invalid):
            await it.cluster.replace_status(replace(made, status=status), manager=MANAGER)
        assert await it.cluster.get(NodeNetworkConfig, "node-a", it.namespace) == made


async def test_a_list_that_is_a_map_by_a_key_has_each_key_once(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config())
        twice = NodeNetworkConfigStatus(conditions=[condition(), condition(status="False")])
        with pytest.raises(Invalid):
            await it.cluster.replace_status(replace(made, status=twice), manager=MANAGER)


async def test_what_the_schema_allows_is_taken_as_it_is(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.config())
        status = NodeNetworkConfigStatus(
            status=ConfigStatus.UPDATED,
            network_containers=[NetworkContainer(id="a", status=ContainerStatus.SUCCESS)],
            conditions=[condition(since="2026-11-05T12:00:00.25+01:00")],
        )
        put = await it.cluster.replace_status(replace(made, status=status), manager=MANAGER)
        assert put.status == status


async def test_the_schema_holds_for_every_way_to_write(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(slices(it))
        wrong_slice = NodeSliceAllocation(node_name="", slice_range="10.0.0.0")
        wrong = replace(made, status=NodeSlicePoolStatus(allocations=[wrong_slice]))
        with pytest.raises(Invalid):
            await it.cluster.replace(wrong, manager=MANAGER)
        for name in ("net", "another"):
            with pytest.raises(Invalid):
                await it.cluster.apply(slices(it, cidr="nonsense", name=name), manager=MANAGER)
        assert (await it.cluster.list(NodeSlicePool, it.namespace)).items == [made]


async def test_defaults_are_filled_in_where_the_object_they_belong_to_is_there(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(SparseConfig(metadata=it.metadata("node-a"), spec={}))
        assert (made.spec, made.status) == ({"requestedIPCount": 0}, None)
        said = SparseStatus(network_containers=[{"id": "x"}, {"id": "y", "type": "other"}])
        put = await it.cluster.replace_status(replace(made, status=said), manager=MANAGER)
        assert put.status == SparseStatus(
            assigned_ip_count=0,
            network_containers=[
                {"id": "x", "version": 0, "assignmentMode": "dynamic", "type": "vnet"},
                {"id": "y", "version": 0, "assignmentMode": "dynamic", "type": "other"},
            ],
        )
        assert await it.cluster.get(SparseConfig, "node-a", it.namespace) == put


async def test_without_the_object_they_belong_to_there_are_no_defaults(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(SparseConfig(metadata=it.metadata("node-a")))
        assert (made.spec, made.status) == (None, None)


async def test_leaving_out_a_default_again_changes_nothing(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(SparseConfig(metadata=it.metadata("node-a"), spec={}))
        sparse = SparseConfig(metadata=made.metadata, spec={})
        assert await it.cluster.replace(sparse, manager="somebody-else") == made


async def test_a_default_that_an_apply_left_to_the_server_is_nobodys(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        sparse = SparseConfig(metadata=it.metadata("node-a"), spec={"availabilityZone": 1})
        made = await it.cluster.apply(sparse, manager="one")
        assert made.spec == {"availabilityZone": 1, "requestedIPCount": 0}
        assert await it.cluster.apply(sparse, manager="one") == made
        other = SparseConfig(metadata=it.metadata("node-a"), spec={"requestedIPCount": 5})
        taken = await it.cluster.apply(other, manager="other", force=False)
        assert taken.spec == {"availabilityZone": 1, "requestedIPCount": 5}
        assert (await it.cluster.apply(sparse, manager="one", force=False)).spec == taken.spec


async def test_an_applied_field_that_is_given_up_goes_back_to_its_default(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        wish = SparseConfig(
            metadata=it.metadata("node-a"), spec={"availabilityZone": 1, "requestedIPCount": 5}
        )
        await it.cluster.apply(wish, manager="one")
        less = await it.cluster.apply(replace(wish, spec={"availabilityZone": 1}), manager="one")
        assert less.spec == {"availabilityZone": 1, "requestedIPCount": 0}


async def test_a_number_beyond_64_bits_is_invalid(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        for number in (2**63, -(2**63) - 1, 2**64):
            with pytest.raises(Invalid):
                await it.create(it.config(requested=number))
            zoned = replace(it.config(), spec=NodeNetworkConfigSpec(availability_zone=number))
            with pytest.raises(Invalid):
                await it.create(zoned)
        (made,) = await it.create(it.config(requested=2**63 - 1))
        assert made.spec.requested_ip_count == 2**63 - 1
