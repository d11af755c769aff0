import json
from typing import Any

import pytest

from podtide.cni.errors import ForeignIpam, Undecodable
from podtide.cni.explain import MOST_REPORTED, explain_assign
from podtide.core.errors import InvalidConfig, InvalidRange, RangeFull


def ipam(**keys: Any) -> str:
    return json.dumps({"type": "whereabouts"} | keys)


def test_the_answer_carries_all_of_its_terms() -> None:
    explained = explain_assign(
        ipam(
            range="10.0.0.0/24",
            range_start="10.0.0.10",
            range_end="10.0.0.99",
            exclude=["10.0.0.10/31", "10.0.0.98"],
            gateway="10.0.0.50",
        ),
        taken=["10.0.0.12", " 10.0.0.13", "10.0.0.1"],
    )
    (terms,) = explained.ranges
    assert explained.address == terms.address == "10.0.0.14"
    assert (terms.range, terms.slice, terms.prefix_length) == ("10.0.0.0/24", None, 24)
    assert (terms.first, terms.last) == ("10.0.0.12", "10.0.0.99")
    assert terms.size == 256
    assert terms.withheld_by_ends == 164
    assert terms.withheld_by_excludes == 3
    assert terms.withheld_by_gateway == 1
    assert terms.capacity == 86 == 256 - 2 - 164 - 3 - 1
    assert terms.taken == 2
    assert explained.gateway == "10.0.0.50"
    assert explained.warnings == ()


def test_a_range_written_with_its_ends_counts_what_they_take_away() -> None:
    (terms,) = explain_assign(ipam(range="192.168.1.5-192.168.1.25/24")).ranges
    assert (terms.address, terms.capacity, terms.withheld_by_ends) == ("192.168.1.5", 21, 233)


def test_dual_stack_gets_one_address_from_each_range_and_then_the_static_ones() -> None:
    explained = explain_assign(
        ipam(range="10.0.0.0/24", ipRanges=[{"range": "fd00::/64"}], addresses=[{"address": "10.9.0.5/16"}]),
        taken=["fd00::1"],
    )
    assert explained.address == "10.0.0.1"
    assert explained.addresses == ("10.0.0.1", "fd00::2")
    assert explained.static == ("10.9.0.5/16",)


def test_counts_too_large_for_json_end_where_json_is_exact() -> None:
    (terms,) = explain_assign(ipam(range="fd00::/64")).ranges
    assert terms.size == terms.capacity == MOST_REPORTED == 2**53


def test_two_ranges_that_overlap_do_not_give_one_address_twice() -> None:
    assert explain_assign(ipam(range="10.0.0.0/24", ipRanges=[{"range": "10.0.0.0/16"}])).addresses == (
        "10.0.0.1",
        "10.0.0.2",
    )


def test_with_slices_the_first_slice_with_a_free_address_answers_and_its_edges_are_nobodys() -> None:
    taken = ["10.0.0.1", "10.0.0.2"]
    (terms,) = explain_assign(ipam(range="10.0.0.0/28", node_slice_size="/30"), taken).ranges
    assert (terms.address, terms.slice, terms.prefix_length) == ("10.0.0.5", "10.0.0.4/30", 28)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda bare: bare,
        lambda bare: {"cniVersion": "1.0.0", "name": "n", "type": "macvlan", "ipam": bare},
        lambda bare: {"name": "n", "plugins": [{"type": "tuning"}, {"type": "macvlan", "ipam": bare}]},
        lambda bare: {
            "kind": "NetworkAttachmentDefinition",
            "spec": {"config": json.dumps({"name": "n", "ipam": bare})},
        },
    ],
    ids=["bare ipam", "plugin", "list of plugins", "NetworkAttachmentDefinition"],
)
def test_whatever_holds_the_ipam_object_may_be_handed_in_whole(wrap: Any) -> None:
    text = json.dumps(wrap({"type": "whereabouts", "range": "192.168.2.225/28"}))
    assert explain_assign(text, ["192.168.2.225"]).address == "192.168.2.226"


def test_a_bare_object_without_type_is_taken_for_whereabouts() -> None:
    assert explain_assign('{"range": "10.0.0.0/24"}').address == "10.0.0.1"


def test_what_was_tolerated_is_said() -> None:
    explained = explain_assign(ipam(range="10.0.0.0/24", range_end="10.0.1.9"), ["10.1.0.1", "fd00::1"])
    assert explained.warnings == (
        "the end 10.0.1.9 is ignored: 10.0.0.0/24 can end at 10.0.0.1 to 10.0.0.254",
        "taken 10.1.0.1 is in none of the ranges",
        "taken fd00::1 is in none of the ranges",
    )


def test_a_full_range_is_told_in_one_line() -> None:
    with pytest.raises(
        RangeFull, match=r"no address of 10\.0\.0\.0/30 is free: of 2 .* 2 are taken; free some"
    ) as caught:
        explain_assign(ipam(range="10.0.0.0/30"), ["10.0.0.1", "10.0.0.2"])
    assert "\n" not in str(caught.value)


def test_a_range_whose_slices_are_full_says_where_the_rest_went() -> None:
    with pytest.raises(
        RangeFull, match="of 6 that may be handed out, 4 are taken, and the rest are the first or last"
    ):
        explain_assign(
            ipam(range="10.0.0.0/29", node_slice_size="/30"), ["10.0.0.1", "10.0.0.2", "10.0.0.5", "10.0.0.6"]
        )


def test_one_full_range_of_two_fails_the_whole_add() -> None:
    with pytest.raises(RangeFull, match="fd00::/126"):
        explain_assign(ipam(range="10.0.0.0/24", ipRanges=[{"range": "fd00::/126"}]), ["fd00::1", "fd00::2"])


def test_a_primary_network_has_no_range_to_explain() -> None:
    with pytest.raises(InvalidConfig, match="come from the node's pool"):
        explain_assign('{"type": "podtide"}')


def test_a_taken_address_that_is_none_is_an_error() -> None:
    with pytest.raises(InvalidRange, match="'nope' is not a valid IP address"):
        explain_assign(ipam(range="10.0.0.0/24"), ["nope"])


def test_anothers_ipam_is_not_explained() -> None:
    with pytest.raises(ForeignIpam, match="'host-local'"):
        explain_assign('{"type": "host-local"}')


def test_a_definition_whose_config_is_broken_says_that_it_is_the_config() -> None:
    with pytest.raises(Undecodable, match=r"spec\.config is not JSON"):
        explain_assign('{"spec": {"config": "{"}}')
