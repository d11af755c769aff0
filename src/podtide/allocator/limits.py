"""Limits of names and numbers in a call: what exceeds them is refused, before the database is used.

The service's schema states the same numbers (`wire`), so that a client can know them beforehand.
"""

import re
from functools import lru_cache
from typing import get_args

from podtide.allocator.containers import ContainerReservation, Wish
from podtide.allocator.subnets import Bounds, SubnetInForce, SubnetSpec, UsageStep
from podtide.allocator.terms import HeldContainer, ShownAddresses, TermClaim
from podtide.core.errors import InvalidInput
from podtide.core.exact import exact, shortened, text
from podtide.core.ranges import parse_address
from podtide.core.subnet.batch_bounds import BatchBounds
from podtide.core.subnet.exhaustion import Thresholds
from podtide.core.subnet.statement import StatedDemand
from podtide.resources.names import LONGEST_LABEL_VALUE

LONGEST_NAME = 253
MOST_WANTED = 65_536
"""Addresses a node may ask for, names it may release at once, pods that may wait."""
USUAL_PAGE = 500
LONGEST_PAGE = 1_000
MOST_SEEN = 1_000
"""Subnets that one request may name the versions of; the client sends more in several."""
MOST_KEPT_BACK = 10_000
"""Addresses a subnet may keep back one by one; `keep_back_first` is for more."""
LARGEST_NUMBER = 2**63 - 1
"""Of generations, statements and serials: what databases count to."""
LARGEST_VERSION = 2**53
"""Of a container: what every reader of JSON can count to, and what leaves a database room to go on."""
USAGE_STEPS: tuple[str, ...] = get_args(UsageStep)
LONGEST_STEP = 63
LONGEST_REASON = 1_024
LONGEST_FRACTION = 60
"""Characters of the shortest exact text: what is longer could not be read again (see `core.exact`)."""
NAME = r"[A-Za-z0-9]([A-Za-z0-9._\-]*[A-Za-z0-9])?"
_NAME = re.compile(NAME)
NAME_RULE = "is not a valid name: use letters, digits, '.', '_' and '-', with a letter or digit at both ends"


def is_name(text: str) -> bool:
    """Whether it is a valid name at the allocator."""
    return len(text) <= LONGEST_NAME and _reads_as_name(text)


@lru_cache(maxsize=16_384)
def _reads_as_name(text: str) -> bool:
    """Nodes, clusters and subnets are the same again and again."""
    return _NAME.fullmatch(text) is not None


def check_names(**names: str) -> None:
    """Refuse invalid names; each keyword says what it is the name of."""
    for what, name in names.items():
        if not is_name(name):
            shown = name if len(name) <= LONGEST_NAME else f"{name[:32]}… of {len(name)} characters"
            raise InvalidInput(f"{what} {shown!r} {NAME_RULE}, and at most {LONGEST_NAME} of them")


def check_spec(spec: SubnetSpec) -> None:
    """Refuse a subnet that lists too many addresses to keep back; the layout validates the addresses."""
    check_names(network=spec.network, subnet=spec.name)
    _check_number("keep_back_first", spec.keep_back_first, MOST_WANTED)
    _check_length("keep_back", spec.keep_back, MOST_KEPT_BACK, "use keep_back_first for more")


def check_new_subnet(name: str) -> None:
    """Refuse a new subnet whose name does not fit the label by which nodes choose one. Existing subnets keep theirs."""
    if len(name) > LONGEST_LABEL_VALUE:
        raise InvalidInput(
            f"subnet {shortened(name)!r} has {len(name)} characters: give a new one at most {LONGEST_LABEL_VALUE}, because "
            "nodes choose a subnet by the value of a label, which cannot be longer"
        )


def check_wish(wish: Wish) -> None:
    """Refuse an invalid wish."""
    check_names(
        container=wish.id,
        network=wish.network,
        subnet=wish.subnet,
        cluster=wish.cluster,
        node=wish.node,
        request=wish.request_uid,
    )
    _check_number("generation", wish.generation, LARGEST_NUMBER)
    _check_number("count", wish.count, MOST_WANTED)
    _check_number("waiting_pods", wish.waiting_pods, MOST_WANTED)
    _check_length("release", wish.release, MOST_WANTED, "release them in several wishes")
    _check_number("statement_number", wish.statement_number, LARGEST_NUMBER)
    _check_number("seen", wish.seen, LARGEST_VERSION)
    if wish.cluster_uid:
        check_names(uid=wish.cluster_uid)
    if wish.stated is not None:
        _check_stated(wish.stated)
    for what in ("machine_id", "system_uuid", "boot_id"):
        _check_text(what, getattr(wish.machine, what), LONGEST_NAME)
    if wish.instead_of is not None:
        if wish.instead_of.request_uid:
            check_names(request=wish.instead_of.request_uid)
        _check_number("instead_of generation", wish.instead_of.generation, LARGEST_NUMBER)


def check_ending(addresses: tuple[str, ...], reason: str) -> None:
    """Refuse to end a quarantine without a reason for the record, or with an invalid address."""
    _check_length("addresses", addresses, MOST_WANTED, "end the quarantine in several calls")
    for address in addresses:
        parse_address(address)
    if not reason.strip():
        raise InvalidInput("a quarantine ends for a reason: say why no pod has these addresses any more")
    _check_text("reason", reason, LONGEST_REASON)


def check_claim(claim: TermClaim) -> None:
    """Refuse an invalid claim of a term."""
    check_names(cluster=claim.cluster, uid=claim.cluster_uid, holder=claim.holder)
    for seen in claim.seen:
        check_names(network=seen.network, subnet=seen.subnet)
        _check_number("version", seen.version, LARGEST_VERSION)


def check_held(held: HeldContainer) -> None:
    """Refuse an invalid report of a node."""
    check_names(
        container=held.id,
        network=held.network,
        subnet=held.subnet,
        cluster=held.cluster,
        uid=held.cluster_uid,
        node=held.node,
        request=held.request_uid,
    )
    _check_number("generation", held.generation, LARGEST_NUMBER)
    _check_number("version", held.version, LARGEST_VERSION)
    _check_number("recovery", held.recovery, LARGEST_NUMBER)
    _check_reported(held.node, len(held.addresses))


def check_reservation(reservation: ContainerReservation) -> None:
    """Refuse an invalid reservation."""
    check_names(
        container=reservation.id,
        network=reservation.network,
        subnet=reservation.subnet,
        cluster=reservation.cluster,
        uid=reservation.cluster_uid,
        node=reservation.node,
        request=reservation.request_uid,
    )
    _check_number("generation", reservation.generation, LARGEST_NUMBER)
    _check_length("addresses", reservation.addresses, MOST_WANTED, "no node has as many")
    for address in (reservation.primary, *reservation.addresses):
        parse_address(address)


def check_shown(shown: ShownAddresses) -> None:
    """Refuse an invalid report of pods."""
    check_names(
        network=shown.network,
        subnet=shown.subnet,
        cluster=shown.cluster,
        uid=shown.cluster_uid,
        node=shown.node,
    )
    _check_number("recovery", shown.recovery, LARGEST_NUMBER)
    _check_reported(shown.node, len(shown.addresses))


def _check_reported(node: str, addresses: int) -> None:
    if addresses > MOST_WANTED:
        raise InvalidInput(
            f"node {node} reports {addresses} addresses, and at most {MOST_WANTED} are allowed"
        )


def check_bounds(bounds: Bounds) -> None:
    """Refuse bounds that allow no batch."""
    _check_number("batch", bounds.batch, MOST_WANTED, least=1)
    _check_number("min_batch", bounds.min_batch, MOST_WANTED, least=1)
    if bounds.fixed is not None:
        _check_number("fixed", bounds.fixed, MOST_WANTED, least=1)
    for what in ("buffer", "lower", "upper"):
        _check_fraction(what, getattr(bounds, what))
    BatchBounds(
        bounds.batch,
        exact(bounds.buffer),
        Thresholds(exact(bounds.lower), exact(bounds.upper)),
        bounds.min_batch,
        bounds.fixed,
    )


def check_in_force(decided: SubnetInForce) -> None:
    """Refuse parameters that no node could use."""
    _check_number("batch", decided.batch, MOST_WANTED, least=1)
    _check_fraction("buffer", decided.buffer)
    _check_number("top", decided.top, MOST_WANTED)
    _check_number("serial", decided.serial, LARGEST_NUMBER - 1)
    _check_text("step", decided.step, LONGEST_STEP)
    _check_text("reason", decided.reason, LONGEST_REASON)


@lru_cache(maxsize=16_384)
def _check_stated(stated: StatedDemand) -> None:
    """Nodes state the same few demands again and again. A refusal is not remembered."""
    for what in ("low", "high", "batch", "primaries"):
        _check_number(f"stated {what}", getattr(stated, what), MOST_WANTED)
    if stated.demand is not None:
        _check_number("stated demand", stated.demand, MOST_WANTED)
    _check_number("stated max_ips", stated.max_ips, MOST_WANTED, least=1)
    _check_fraction("stated buffer", stated.buffer)
    if stated.low > stated.high:
        raise InvalidInput(
            f"stated low {stated.low} is above stated high {stated.high}: give the lower demand first"
        )


def check_usage_range(since: float, until: float, step: UsageStep) -> None:
    """Refuse a time that ends before it begins, and rows of a length that is not kept."""
    if step not in USAGE_STEPS:
        raise InvalidInput(f"step {shortened(step)!r} is refused: use one of {', '.join(USAGE_STEPS)}")
    if not since <= until:
        raise InvalidInput(
            f"since {since:.0f} is after until {until:.0f}: give the earlier time first, both in seconds since 1970"
        )


def check_page(limit: int) -> None:
    """Refuse an invalid page size."""
    if not 1 <= limit <= LONGEST_PAGE:
        raise InvalidInput(f"a page of {limit} is refused: ask for 1 to {LONGEST_PAGE} at a time")


def _check_number(what: str, number: int, most: int, *, least: int = 0) -> None:
    if not least <= number <= most:
        raise InvalidInput(f"{what} {number} is refused: give {least} to {most}")


def _check_fraction(what: str, written: str) -> None:
    fraction = exact(written, what)
    if not 0 <= fraction <= MOST_WANTED:
        raise InvalidInput(f"{what} {shortened(written)} is refused: give 0 to {MOST_WANTED}")
    if len(text(fraction)) > LONGEST_FRACTION:
        raise InvalidInput(
            f"{what} {shortened(written)} is refused: give a number of at most {LONGEST_FRACTION} digits"
        )


def _check_text(what: str, written: str, most: int) -> None:
    if len(written) > most:
        raise InvalidInput(
            f"{what} has {len(written)} characters, and at most {most} are allowed: shorten it"
        )
    if "\x00" in written:
        raise InvalidInput(f"{what} has a NUL character, which no database keeps: leave it out")


def _check_length(what: str, names: tuple[str, ...], most: int, advice: str) -> None:
    if len(names) > most:
        raise InvalidInput(f"{what} has {len(names)} entries, and at most {most} are allowed: {advice}")
