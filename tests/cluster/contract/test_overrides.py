"""Which overrides of a ClusterSubnet are taken: the rules between its fields, as CEL and as the embedded cluster has them."""

from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from cluster.contract.harness import MANAGER, ClusterUnderTest, OpenCluster
from podtide.cluster.port import Invalid
from podtide.resources.base import Api, Resource
from podtide.resources.cluster_subnet import (
    ClusterSubnet,
    ClusterSubnetSpec,
    ClusterSubnetStatus,
    ScalerInForce,
    ScalerOverride,
)


class WrittenSubnet(Resource, frozen=True, kw_only=True):
    """A ClusterSubnet as a person may write it."""

    api: ClassVar[Api] = ClusterSubnet.api

    spec: dict[str, Any]


GOOD: list[dict[str, Any]] = [
    {},
    {"batch": 16},
    {"minBatch": 4},
    {"fixed": 8},
    {"fixed": 8, "buffer": 0.5},
    {"fixed": 8, "thresholds": {"lower": 0.5, "upper": 0.6}},
    {"batch": 16, "minBatch": 4},
    {"batch": 4, "minBatch": 4},
    {"batch": 2**62, "minBatch": 1},
    {"thresholds": {"lower": 0.8, "upper": 0.9}},
    {"thresholds": {"lower": 0.001, "upper": 0.999}},
    {"batch": 16, "minBatch": 4, "buffer": 0, "thresholds": {"lower": 0.25, "upper": 0.75}},
    {"fixed": 8, "batch": None, "minBatch": None},
]
BAD: list[tuple[dict[str, Any], str]] = [
    ({"fixed": 8, "batch": 16}, "fixed excludes"),
    ({"fixed": 8, "minBatch": 4}, "fixed excludes"),
    ({"fixed": 8, "batch": 8}, "fixed excludes"),
    ({"fixed": 8, "batch": 16, "minBatch": 4}, "fixed excludes"),
    ({"batch": 4, "minBatch": 5}, "minBatch must not be more"),
    ({"batch": 1, "minBatch": 2**62}, "minBatch must not be more"),
    ({"thresholds": {"lower": 0, "upper": 0.9}}, "0 < lower < upper < 1"),
    ({"thresholds": {"lower": 0.9, "upper": 0.8}}, "0 < lower < upper < 1"),
    ({"thresholds": {"lower": 0.8, "upper": 0.8}}, "0 < lower < upper < 1"),
    ({"thresholds": {"lower": 0.8, "upper": 1}}, "0 < lower < upper < 1"),
    ({"thresholds": {"lower": 80, "upper": 90}}, "0 < lower < upper < 1"),
    ({"batch": 16, "thresholds": {"lower": 0.8, "upper": 1.5}}, "0 < lower < upper < 1"),
    ({"thresholds": {"lower": 0.8}}, "upper"),
    ({"thresholds": {"upper": 0.8}}, "lower"),
    ({"thresholds": {"lower": -0.1, "upper": 0.8}}, "lower"),
    ({"batch": 0}, "batch"),
    ({"minBatch": 0}, "minBatch"),
    ({"fixed": 0}, "fixed"),
    ({"buffer": -0.5}, "buffer"),
]


def written(it: ClusterUnderTest, scaler: dict[str, Any]) -> WrittenSubnet:
    return WrittenSubnet(metadata=it.metadata("pods"), spec={"scaler": scaler})


@pytest.mark.parametrize("scaler", GOOD, ids=str)
async def test_an_override_that_makes_sense_is_taken(
    open_cluster: OpenCluster, scaler: dict[str, Any]
) -> None:
    async with open_cluster() as it:
        await it.create(written(it, scaler))


@pytest.mark.parametrize(("scaler", "words"), BAD, ids=str)
async def test_one_that_does_not_is_refused_and_told_why(
    open_cluster: OpenCluster, scaler: dict[str, Any], words: str
) -> None:
    async with open_cluster() as it:
        with pytest.raises(Invalid, match=words):
            await it.create(written(it, scaler))


async def test_it_is_refused_whichever_way_it_is_written_and_what_was_there_stays(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        batch_only = ClusterSubnetSpec(scaler=ScalerOverride(batch=4))
        (made,) = await it.create(ClusterSubnet(metadata=it.metadata("pods"), spec=batch_only))
        too_much = ClusterSubnetSpec(scaler=ScalerOverride(batch=4, min_batch=8))
        with pytest.raises(Invalid):
            await it.cluster.replace(replace(made, spec=too_much), manager=MANAGER)
        minimum_only = ClusterSubnetSpec(scaler=ScalerOverride(min_batch=8))
        with pytest.raises(Invalid):  # together with the batch that another manager set
            await it.cluster.apply(
                ClusterSubnet(metadata=it.metadata("pods"), spec=minimum_only), manager="b"
            )
        assert await it.cluster.get(ClusterSubnet, "pods", it.namespace) == made


async def test_what_is_in_force_is_not_held_to_the_rules_of_an_override(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        pinned = ClusterSubnetSpec(scaler=ScalerOverride(fixed=8))
        (made,) = await it.create(ClusterSubnet(metadata=it.metadata("pods"), spec=pinned))
        status = ClusterSubnetStatus(cidr="10.0.0.0/24", scaler=ScalerInForce(batch=16, buffer=0, top=8))
        put = await it.cluster.replace_status(replace(made, status=status), manager=MANAGER)
        assert put.status == status
