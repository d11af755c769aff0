"""The bounds that this cluster sets for a subnet's batch: from the settings, or from the override in its ClusterSubnet.

An invalid override is refused as a whole with a condition, and the former bounds stay. What a cluster asks for and what
is in force may differ, because the subnet is short, or because another cluster that shares it allows less: a second
condition says so, and why.
"""

from collections.abc import Iterable

from msgspec import Struct

from podtide.allocator.subnets import Bounds, ClusterBounds, SubnetInForce
from podtide.core.errors import InvalidInput
from podtide.core.exact import exact, text
from podtide.core.subnet.batch_bounds import BatchBounds, check_fit
from podtide.core.subnet.exhaustion import Thresholds
from podtide.resources.cluster_subnet import ScalerOverride
from podtide.resources.conditions import Condition, ConditionStatus
from podtide.runtime.settings import Settings

OVERRIDE_ACCEPTED = "OverrideAccepted"
"""The condition of a ClusterSubnet: whether the override in its spec is used."""
AS_CONFIGURED = "BatchAsConfigured"
"""The condition of a ClusterSubnet: whether the largest batch that the cluster asks for is in force."""


class ConfiguredBounds(Struct, frozen=True):
    """The bounds that this cluster asks for, and what is wrong with an override that was refused."""

    bounds: BatchBounds
    complaint: str = ""


def default_bounds(settings: Settings) -> BatchBounds:
    """The bounds of a cluster without an override."""
    return BatchBounds(
        batch=settings.batch,
        buffer=settings.buffer,
        thresholds=Thresholds(settings.lower_threshold, settings.upper_threshold),
    )


def configure(override: ScalerOverride, settings: Settings, otherwise: BatchBounds) -> ConfiguredBounds:
    """The bounds that the cluster asks for from now on; `otherwise`, the former ones, if the override is refused."""
    default = default_bounds(settings)
    try:
        _refuse_pin_with_bounds(override)
        bounds = BatchBounds(
            batch=default.batch if override.batch is None else override.batch,
            buffer=default.buffer if override.buffer is None else exact(override.buffer, "buffer"),
            thresholds=_thresholds(override) or default.thresholds,
            min_batch=1 if override.min_batch is None else override.min_batch,
            fixed=override.fixed,
        )
        check_fit(bounds, settings.max_ips)
    except InvalidInput as error:
        return ConfiguredBounds(otherwise, f"{error}; until then {otherwise.words} is asked for")
    return ConfiguredBounds(bounds)


def override_condition(
    override: ScalerOverride, configured: ConfiguredBounds, generation: int, now: str
) -> Condition:
    """The condition about the override of a ClusterSubnet."""
    words = configured.bounds.words
    if configured.complaint:
        reason, message = "Refused", configured.complaint
    elif override == ScalerOverride():
        reason, message = "NoOverride", f"the controller's own settings are asked for: {words}"
    else:
        reason, message = "Accepted", f"asked for: {words}"
    return Condition(
        type=OVERRIDE_ACCEPTED,
        status=ConditionStatus.FALSE if configured.complaint else ConditionStatus.TRUE,
        last_transition_time=now,
        reason=reason,
        message=message,
        observed_generation=generation,
    )


def in_force_condition(
    asked: BatchBounds, others: Iterable[ClusterBounds], in_force: SubnetInForce, generation: int, now: str
) -> Condition:
    """The condition about what is in force, and why it differs from what was asked for.

    It quotes the last change: present numbers would cause a write to every agent with each pod.
    """
    words = f"batch {in_force.batch}, buffer {in_force.buffer} is in force"
    smaller = [each for each in others if _allows_less(from_port(each.bounds), asked)]
    if in_force.starved:
        reason, message = "Starved", f"{words}: {in_force.reason}"
    elif in_force.batch < in_force.top:
        last = f"the last change ({in_force.step or 'the first decision'}): {in_force.reason}"
        reason = "SubnetShort"
        message = f"{words}, and {asked.words} was asked for: no larger batch is known to fit; {last}"
    elif smaller:
        names = ", ".join(f"{each.cluster} ({from_port(each.bounds).words})" for each in smaller)
        reason = "AnotherCluster"
        message = (
            f"{words}, and {asked.words} was asked for: other clusters of the subnet allow less: {names}"
        )
    else:
        reason, message = "AsConfigured", words
    is_so = reason == "AsConfigured"
    return Condition(
        type=AS_CONFIGURED,
        status=ConditionStatus.TRUE if is_so else ConditionStatus.FALSE,
        last_transition_time=now,
        reason=reason,
        message=message,
        observed_generation=generation,
    )


def _allows_less(other: BatchBounds, asked: BatchBounds) -> bool:
    return (
        other.top < asked.top
        or other.buffer < asked.buffer
        or (other.thresholds.upper, other.thresholds.lower) < (asked.thresholds.upper, asked.thresholds.lower)
    )


def to_port(bounds: BatchBounds) -> Bounds:
    """The bounds as the allocator keeps them."""
    return Bounds(
        batch=bounds.batch,
        buffer=text(bounds.buffer),
        lower=text(bounds.thresholds.lower),
        upper=text(bounds.thresholds.upper),
        min_batch=bounds.min_batch,
        fixed=bounds.fixed,
    )


def from_port(bounds: Bounds) -> BatchBounds:
    """The bounds as the core decides by them."""
    return BatchBounds(
        batch=bounds.batch,
        buffer=exact(bounds.buffer, "buffer"),
        thresholds=Thresholds(exact(bounds.lower, "lower"), exact(bounds.upper, "upper")),
        min_batch=bounds.min_batch,
        fixed=bounds.fixed,
    )


def _refuse_pin_with_bounds(override: ScalerOverride) -> None:
    """Refuse `fixed` beside `batch` or `minBatch`. The CRD's rule does so too, but an older CRD may be installed."""
    if override.fixed is not None and (override.batch is not None or override.min_batch is not None):
        raise InvalidInput(
            "fixed is given beside batch or minBatch: give the one batch to use, or its bounds"
        )


def _thresholds(override: ScalerOverride) -> Thresholds | None:
    stated = override.thresholds
    if stated is None:
        return None
    return Thresholds(exact(stated.lower, "thresholds.lower"), exact(stated.upper, "thresholds.upper"))
