"""The batch and buffer that a subnet is configured with: the settings', or what a person put in its ClusterSubnet.

An override that no pool can be sized by is refused as a whole, said in a condition, and what was in force stays so.
"""

from math import ceil

from msgspec import Struct

from podtide.core.batching import Batching
from podtide.core.errors import InvalidInput, InvalidScaler
from podtide.core.exact import exact, text
from podtide.core.exhaustion import Thresholds
from podtide.resources.cluster_subnet import ScalerOverride
from podtide.resources.conditions import Condition, ConditionStatus
from podtide.runtime.settings import Settings

OVERRIDE_ACCEPTED = "OverrideAccepted"
"""The condition of a ClusterSubnet: whether what its spec states is what it is configured with."""


class Configured(Struct, frozen=True):
    """What a subnet is configured with, and what is wrong with the override that it is not configured with."""

    batching: Batching
    complaint: str = ""


def default_batching(settings: Settings) -> Batching:
    """What a subnet without an override is configured with."""
    return Batching(
        batch=settings.batch,
        buffer=settings.min_free,
        thresholds=Thresholds(settings.lower_threshold, settings.upper_threshold),
        dwell_seconds=settings.dwell_seconds,
    )


def configure(override: ScalerOverride, settings: Settings, otherwise: Batching) -> Configured:
    """What the subnet is configured with from now on; `otherwise`, what it was, if the override is refused."""
    default = default_batching(settings)
    try:
        batch = default.batch if override.batch is None else override.batch
        buffer = default.buffer if override.buffer is None else exact(override.buffer, "buffer")
        _refuse_more_than_fits(batch, ceil(buffer * batch), settings.max_ips)
        batching = Batching(batch, buffer, default.thresholds, default.dwell_seconds)
    except InvalidInput as error:
        stays = f"batch {otherwise.batch}, buffer {text(otherwise.buffer)} stay"
        return Configured(otherwise, f"{error}; until then {stays} in force")
    return Configured(batching)


def override_condition(
    override: ScalerOverride, configured: Configured, generation: int, now: str
) -> Condition:
    """What a ClusterSubnet says of its override."""
    batching = configured.batching
    words = f"batch {batching.batch}, buffer {text(batching.buffer)}"
    if configured.complaint:
        reason, message = "Refused", configured.complaint
    elif override == ScalerOverride():
        reason, message = "NoOverride", f"configured with the controller's own {words}"
    else:
        reason, message = "Accepted", f"configured with {words}"
    return Condition(
        type=OVERRIDE_ACCEPTED,
        status=ConditionStatus.FALSE if configured.complaint else ConditionStatus.TRUE,
        last_transition_time=now,
        reason=reason,
        message=message,
        observed_generation=generation,
    )


def _refuse_more_than_fits(batch: int, least_free: int, max_ips: int) -> None:
    if batch > max_ips:
        raise InvalidScaler(
            f"batch {batch} is more than the {max_ips} addresses a node may have: give {max_ips} or less"
        )
    if least_free > max_ips:
        raise InvalidScaler(
            f"a buffer of {least_free} addresses is more than the {max_ips} a node may have: give a smaller buffer or batch"
        )
