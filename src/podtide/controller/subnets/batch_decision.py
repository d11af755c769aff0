"""Converts the allocator's reading of a subnet into the core's types, and the core's decision back. Decides nothing."""

from fractions import Fraction

from msgspec import structs

from podtide.allocator.subnets import SubnetDemandReport, SubnetInForce
from podtide.controller.subnets.overrides import from_port
from podtide.core.exact import text
from podtide.core.subnet.batch import BatchDelays, BatchInForce, BatchMove, SubnetDecision, SubnetReading
from podtide.core.subnet.batch_bounds import BatchBounds, merge_bounds
from podtide.core.subnet.demand_by_batch import ContainerDemand
from podtide.core.subnet.scaler import SubnetScaler
from podtide.runtime.settings import Settings


def patience_of(settings: Settings) -> BatchDelays:
    """How long a change of the batch may wait, by the settings."""
    return BatchDelays(settings.answer_wait_seconds, settings.starved_dwell_seconds)


def reading_of(demand: SubnetDemandReport) -> SubnetReading:
    """The subnet as it was read, with the capacity that it will have once its draining CIDRs have left."""
    subnet = demand.subnet
    return SubnetReading(
        capacity=subnet.capacity - subnet.draining_reserved,
        draining=subnet.draining_reserved,
        reserved=subnet.reserved,
        containers=subnet.containers,
        owed=subnet.owed,
        ungoverned=subnet.quarantined,
        holdings={ContainerDemand(each.stated, each.taken): each.containers for each in demand.alike},
    )


def standing_of(in_force: SubnetInForce) -> BatchInForce:
    """What was in force when it was read."""
    return BatchInForce(
        scaler=scaler_of(in_force),
        exhausted=in_force.exhausted,
        starved=in_force.starved,
        age_seconds=in_force.age_seconds,
    )


def scaler_of(in_force: SubnetInForce) -> SubnetScaler | None:
    """The batch and buffer in force; None if nothing was decided yet."""
    return SubnetScaler(in_force.batch, Fraction(in_force.buffer)) if in_force.batch else None


def bounds_of_all(mine: BatchBounds, demand: SubnetDemandReport, cluster: str) -> BatchBounds:
    """The merged bounds of all clusters with containers in the subnet, so that each of them decides by the same.

    This cluster's bounds are taken as they are now. Where it has no container, they count only if no other cluster has
    one.
    """
    counting = [mine if each.cluster == cluster else from_port(each.bounds) for each in demand.bounds]
    return merge_bounds(counting or [mine])


def bounds_in_force(demand: SubnetDemandReport) -> BatchBounds:
    """The merged bounds as the allocator has them, for a reader that has none of its own; the defaults where no cluster uses it."""
    return merge_bounds([from_port(each.bounds) for each in demand.bounds] or [BatchBounds()])


def in_force_after(before: SubnetInForce, decision: SubnetDecision, bounds: BatchBounds) -> SubnetInForce:
    """What is to be in force.

    Step and reason are those of the last change of batch and buffer, whichever cluster made it.
    """
    moved = decision.step is not BatchMove.NONE or not before.batch
    return structs.replace(
        before,
        batch=decision.scaler.batch,
        buffer=text(decision.scaler.buffer),
        top=bounds.top,
        exhausted=decision.exhausted,
        starved=decision.starved,
        step=decision.step.value if moved else before.step,
        reason=decision.reason if moved else before.reason,
    )
