"""A person may have a node's agent free what no pod can have, and nothing else without force."""

import pytest

from podtide.core.pool.demand import PodOnNode
from podtide.core.pool.manual_release import FreeingObjection, objections_to_freeing
from podtide.core.pool.pool import Owner

GRACE = 300.0
OWNER = Owner("sandbox", "eth0", pod="uid", namespace="default", name="web")
NAMELESS = Owner("sandbox", "eth0")
POD = PodOnNode("uid", "default", "web")
OTHER = PodOnNode("another", "default", "web")
ENDED = PodOnNode("uid", "default", "web", ended=True)


@pytest.mark.parametrize(
    ("owner", "pods", "suspected", "objections"),
    [
        (OWNER, (), GRACE, ()),
        (OWNER, (OTHER,), GRACE, ()),
        (OWNER, (ENDED,), 0.0, ()),
        (OWNER, (), GRACE - 1, (FreeingObjection.RECENT,)),
        (OWNER, (OTHER,), 0.0, (FreeingObjection.RECENT,)),
        (OWNER, (POD,), GRACE, (FreeingObjection.ALIVE,)),
        (NAMELESS, (POD,), GRACE, (FreeingObjection.UNPROVEN,)),
        (OWNER, None, GRACE, (FreeingObjection.UNREADABLE,)),
    ],
    ids=[
        *("gone", "replaced", "ended", "just gone", "just replaced", "alive", "nameless", "unreadable"),
    ],
)
def test_what_a_pod_may_have_is_not_freed_without_force(
    owner: Owner,
    pods: tuple[PodOnNode, ...] | None,
    suspected: float,
    objections: tuple[FreeingObjection, ...],
) -> None:
    found = objections_to_freeing(
        owner, pods, is_shown=False, suspected_seconds=suspected, grace_seconds=GRACE
    )
    assert found == objections


def test_an_address_that_a_pod_shows_is_not_freed_whosever_sandbox_has_it() -> None:
    found = objections_to_freeing(OWNER, (), is_shown=True, suspected_seconds=GRACE, grace_seconds=GRACE)
    assert found == (FreeingObjection.SHOWN,)


def test_a_sandbox_that_knows_its_pod_by_name_alone_is_its_pods() -> None:
    by_name = Owner("sandbox", "eth0", namespace="default", name="web")
    found = objections_to_freeing(
        by_name, (POD,), is_shown=False, suspected_seconds=GRACE, grace_seconds=GRACE
    )
    assert found == (FreeingObjection.ALIVE,)
