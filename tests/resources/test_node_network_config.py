"""Which Node a NodeNetworkConfig belongs to: agent, controller and `podtide why` all ask the same property."""

import pytest

from podtide.resources.base import ObjectMeta, OwnerReference
from podtide.resources.node_network_config import NodeNetworkConfig


def owned_by(*owners: OwnerReference) -> NodeNetworkConfig:
    return NodeNetworkConfig(
        metadata=ObjectMeta(name="n", namespace="kube-system", owner_references=list(owners))
    )


def owner(
    uid: str, *, api_version: str = "v1", kind: str = "Node", controller: bool = True
) -> OwnerReference:
    return OwnerReference(api_version=api_version, kind=kind, name="n", uid=uid, controller=controller)


def test_it_belongs_to_the_node_that_controls_it_whatever_owners_others_add() -> None:
    beside = owner("another-node", controller=False)
    assert owned_by(owner("u1")).node_uid == "u1"
    assert owned_by(beside, owner("u1")).node_uid == "u1"


@pytest.mark.parametrize(
    "owners",
    [
        (),
        (owner("u1", controller=False),),
        (owner("u1", kind="Machine"),),
        (owner("u1", api_version="example.com/v1"),),
        (owner("u1", controller=False), owner("u2", kind="Machine")),
    ],
    ids=["none", "not-the-controller", "another-kind", "another-group", "none-of-two"],
)
def test_no_other_owner_makes_it_a_nodes(owners: tuple[OwnerReference, ...]) -> None:
    assert owned_by(*owners).node_uid == ""
