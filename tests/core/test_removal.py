"""What is removed from a cluster, what stays, and when it is refused."""

import pytest

from podtide.core.removal import (
    FoundDefinition,
    FoundObject,
    InstalledParts,
    LivingPod,
    NodeWork,
    Removal,
    RemovalWish,
    plan_removal,
    some_of,
)

ROLE = FoundObject(kind="Role", namespace="kube-system", name="podtide-agent", is_labelled=True)
CLAIM = FoundObject(
    kind="PersistentVolumeClaim",
    namespace="kube-system",
    name="subnets-podtide-allocator-0",
    is_labelled=True,
)
CONFIG = FoundObject(kind="NodeNetworkConfig", namespace="kube-system", name="node-a", is_marked=True)
OTHERS = FoundObject(
    kind="IPPool",
    namespace="kube-system",
    name="10.0.0.0-24",
    writers=frozenset({"whereabouts", "podtide-agent"}),
)


def pool(*writers: str) -> FoundObject:
    return FoundObject(kind="IPPool", namespace="kube-system", name="a", writers=frozenset(writers))


def definition(
    *objects: FoundObject, is_labelled: bool = True, users: tuple[str, ...] = ()
) -> FoundDefinition:
    return FoundDefinition(name="pools", is_labelled=is_labelled, objects=objects, users=users)


def plan(situation: InstalledParts, **wish: bool) -> Removal:
    return plan_removal(situation, RemovalWish(**wish))


@pytest.mark.parametrize(
    ("found", "is_own"),
    [
        (ROLE, True),
        (CONFIG, True),
        (pool("podtide-agent"), True),
        (pool("podtide-agent", "podtide-controller", "kubectl-edit"), True),
        (OTHERS, False),
        (pool("whereabouts"), False),
        (pool("kubectl-create"), False),
        (pool(), False),
    ],
)
def test_an_object_is_podtides_by_its_label_a_mark_or_because_podtide_alone_wrote_it(
    found: FoundObject, is_own: bool
) -> None:
    assert found.is_own == is_own


def test_everything_that_is_podtides_goes() -> None:
    removal = plan(InstalledParts(objects=(ROLE,), definitions=(definition(CONFIG),), has_agents=True))
    assert removal.objections == ()
    assert removal.node_work is NodeWork.REPLACE_AGENTS
    assert removal.objects == (ROLE,)
    assert removal.custom_resources == (CONFIG,)
    assert removal.definitions == ("pools",)
    assert removal.kept == ()
    assert not removal.is_done


def test_nodes_that_placement_wrote_on_are_cleared_and_need_no_remover() -> None:
    removal = plan(InstalledParts(nodes_with_traces=("node-b", "node-a")))
    assert removal.nodes_with_traces == ("node-a", "node-b")
    assert (removal.node_work, removal.objections) == (NodeWork.NOTHING, ())
    assert not removal.is_done


def test_what_has_no_sign_of_podtide_is_left_though_it_was_found() -> None:
    unmarked = FoundObject(kind="Role", name="somebodys")
    assert plan(InstalledParts(objects=(unmarked,))).objects == ()


def test_a_definition_with_objects_of_another_program_stays_and_they_do_too() -> None:
    removal = plan(InstalledParts(definitions=(definition(OTHERS, pool("podtide-agent")),)))
    assert removal.custom_resources == (pool("podtide-agent"),)
    assert removal.definitions == ()
    [kept] = removal.kept
    assert kept.what == "CustomResourceDefinition pools"
    assert kept.reason == "in it is IPPool kube-system/10.0.0.0-24, written by podtide-agent, whereabouts"


def test_of_several_objects_of_others_the_first_is_named() -> None:
    nameless = FoundObject(kind="IPPool", name="b")
    [kept] = plan(InstalledParts(definitions=(definition(OTHERS, nameless),))).kept
    assert kept.reason == "2 objects in it are not podtide's, such as IPPool b, written by somebody"


@pytest.mark.parametrize(
    ("found", "keeps", "reason"),
    [
        (definition(), True, "--keep-crds"),
        (definition(is_labelled=False), False, "another program installed it"),
        (
            definition(users=("NetworkAttachmentDefinition a/b",)),
            False,
            "NetworkAttachmentDefinition a/b still needs it",
        ),
    ],
)
def test_an_empty_definition_stays_where_it_is_wanted_needed_or_not_podtides(
    found: FoundDefinition, keeps: bool, reason: str
) -> None:
    removal = plan(InstalledParts(definitions=(found,)), keep_definitions=keeps)
    assert removal.definitions == ()
    assert [kept.reason for kept in removal.kept] == [reason]


def test_the_database_stays_unless_that_is_asked_for() -> None:
    situation = InstalledParts(objects=(CLAIM, ROLE), has_agents=True)
    removal = plan(situation)
    assert removal.objects == (ROLE,)
    [kept] = removal.kept
    assert (kept.what, "--delete-database" in kept.reason) == (str(CLAIM), True)
    assert plan(situation, delete_database=True).objects == (CLAIM, ROLE)
    assert plan(situation, delete_database=True).kept == ()


def test_a_database_alone_is_nothing_left_to_do() -> None:
    assert plan(InstalledParts(objects=(CLAIM,))).is_done


PODS = tuple(
    LivingPod(name=f"default/web-{number}", node="node-a", addresses=frozenset({f"10.1.0.{number}"}))
    for number in range(8)
)


def test_it_is_refused_while_pods_hold_addresses_and_says_which() -> None:
    removal = plan(InstalledParts(pods=PODS, granted=frozenset({"10.1.0.3"}), has_agents=True))
    assert removal.holders == (PODS[3],)
    [objection] = removal.objections
    assert objection.startswith("1 pod holds addresses of podtide's (default/web-3 on node-a)")
    assert "--force" in objection
    assert not removal.may_free_addresses


def test_of_many_pods_a_few_are_named() -> None:
    granted = frozenset(address for pod in PODS for address in pod.addresses)
    [objection] = plan(InstalledParts(pods=PODS, granted=granted, has_agents=True)).objections
    assert objection.startswith("8 pods hold addresses of podtide's (default/web-0 on node-a, ")
    assert "default/web-4 on node-a and 3 more)" in objection
    assert "web-5" not in objection


def test_an_address_of_a_secondary_network_is_one_too() -> None:
    removal = plan(
        InstalledParts(pods=PODS, pods_in_pools=frozenset({"default/web-2", "default/gone"}), has_agents=True)
    )
    assert removal.holders == (PODS[2],)
    assert removal.objections


def test_pods_with_addresses_of_other_networks_do_not_matter() -> None:
    removal = plan(InstalledParts(pods=PODS, granted=frozenset({"10.2.0.1"}), has_agents=True))
    assert removal.objections == ()
    assert removal.may_free_addresses


def test_force_overrides_but_what_pods_have_is_not_freed() -> None:
    removal = plan(InstalledParts(pods=PODS, granted=frozenset({"10.1.0.3"}), has_agents=True), force=True)
    assert removal.objections == ()
    assert not removal.may_free_addresses


@pytest.mark.parametrize(
    ("situation", "wish", "work"),
    [
        (InstalledParts(has_agents=True, has_remover=True), {}, NodeWork.REPLACE_AGENTS),
        (InstalledParts(has_remover=True), {}, NodeWork.GO_ON),
        (InstalledParts(), {"has_image": True}, NodeWork.FROM_IMAGE),
        (InstalledParts(objects=(ROLE,)), {}, NodeWork.UNKNOWN),
        (InstalledParts(definitions=(definition(),)), {}, NodeWork.UNKNOWN),
        (InstalledParts(definitions=(definition(CONFIG),)), {"keep_definitions": True}, NodeWork.UNKNOWN),
        (InstalledParts(objects=(ROLE,)), {"force": True}, NodeWork.NOTHING),
        (InstalledParts(), {}, NodeWork.NOTHING),
    ],
)
def test_nodes_are_clean_only_where_a_remover_has_been(
    situation: InstalledParts, wish: dict[str, bool], work: NodeWork
) -> None:
    removal = plan(situation, **wish)
    assert removal.node_work is work
    assert bool(removal.objections) == (work is NodeWork.UNKNOWN)
    assert not removal.objections or "--image" in removal.objections[0]


def test_a_remover_that_is_left_is_something_to_do() -> None:
    assert not plan(InstalledParts(has_remover=True)).is_done
    assert plan(InstalledParts()).is_done


def test_a_long_list_is_cut() -> None:
    assert some_of("abc", 3) == "a, b, c"
    assert some_of("abcd", 3) == "a, b, c and 1 more"
