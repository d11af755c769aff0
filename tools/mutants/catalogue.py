"""The mutants: each is one line of production code, changed so that a rule of docs/design no longer holds.

Most rules are here because somebody's IPAM broke them once. No mutant has a scenario of its own: `podtide simulate
--faults all` has to come upon it by chance, within 200 seeds. Some rules count only after minutes in which a Node goes
unnoticed, which short runs seldom have: these mutants name the test that finds them instead.
"""

from msgspec import Struct


class Mutant(Struct, frozen=True, kw_only=True):
    """One changed line."""

    name: str
    file: str
    """Below `src/podtide`."""
    old: str
    """The line without its indentation; the file has it exactly once."""
    new: str
    why: str
    """What is wrong with it: a clause for the table."""
    networks: int = 0
    """How many secondary networks a run has that can find it."""
    placement: bool = False
    """Whether only a run with a scheduler can find it."""
    test: str = ""
    """The test that finds it, where seeds do not; "" where they do."""


MUTANTS = (
    Mutant(
        name="release-without-naming",
        file="allocator/store/container_writes.py",
        old="chunk, bit = name.place.chunk, 1 << name.place.position",
        new="chunk, bit = name.place.chunk, row.grants.get((name.version, name.place.chunk), 0)",
        why="naming one address releases all that were granted along with it",
    ),
    Mutant(
        name="pending-release-reused",
        file="core/pool/container_addresses.py",
        old="shelves = (self.shelves[State.AVAILABLE], self.rested)",
        new="shelves = (self.shelves[State.AVAILABLE], self.rested, self.shelves[State.PENDING_RELEASE])",
        why="an address that was named for release is handed out once more",
    ),
    Mutant(
        name="older-version-accepted",
        file="core/pool/container_updates.py",
        old="if container.version < holding.version:",
        new="if container.version < 0:",
        why="an older version of a network container brings back what was released since",
    ),
    Mutant(
        name="demand-zero-before-sync",
        file="agent/request/readiness.py",
        old="if not self._pods.synced.is_set():",
        new="if False:",
        why="pods that were not listed yet count as none",
    ),
    Mutant(
        name="wish-not-idempotent",
        file="allocator/store/container_writes.py",
        old="missing = max(0, wish.count - row.held) + (row.primary is None)",
        new="missing = wish.count + (row.primary is None)",
        why="a wish that is stated again is granted again",
    ),
    Mutant(
        name="assign-before-journal",
        file="agent/pool/journaled_pool.py",
        old="addresses = self._record(Assigned(owner, tuple(address.ip for address in chosen)))",
        new="addresses = self.pool.take(owner, [address.ip for address in chosen], self._clock.monotonic())",
        why="a pod has its address before the journal has it",
    ),
    Mutant(
        name="free-by-pod-name",
        file="agent/api/address_service.py",
        old="return self._given(self._journaled.free(*key) or self._free_stand_in(owner))",
        new="return self._given(tuple(freed for each in self._journaled.demand.owners() if each.name == owner.name for freed in self._journaled.free(each.sandbox, each.interface)))",
        why="the DEL of a pod's earlier sandbox frees what the present one of that name has",
    ),
    Mutant(
        name="owner-uid-not-checked",
        file="agent/request/config_follower.py",
        old="if present != identity.node_uid:",
        new='if present == "none":',
        why="the NodeNetworkConfig of an earlier Node of the same name is gone by",
    ),
    Mutant(
        name="grant-beyond-capacity",
        file="allocator/store/subnet_transaction.py",
        old="free = max(0, self.subnet.free)",
        new="free = wanted.owed",
        why="more is granted than the subnet has",
    ),
    Mutant(
        name="exhaustion-of-the-wrong-subnet",
        file="agent/request/node_config.py",
        old="return tuple(dict.fromkeys(network.subnet for network in networks if network.subnet))",
        new="return tuple(dict.fromkeys(network.container.id for network in networks if network.subnet))",
        why="nodes use the state of another subnet than their own",
    ),
    Mutant(
        name="naming-not-journaled",
        file="agent/pool/journaled_pool.py",
        old="self._record(Named(container_id, names))",
        new="self.pool.name(container_id, names, self._clock.monotonic())",
        why="a restarted agent does not know what its predecessor named, and hands it out",
    ),
    Mutant(
        name="nobody-shown-before-sync",
        file="agent/pool/recovery.py",
        old="await self._pods.synced.wait()",
        new="pass",
        why="after a lost journal everything is proven free by pods that were not listed yet",
    ),
    Mutant(
        name="grant-outside-the-subnet",
        file="allocator/store/tables/supply.py",
        old="self._set(chunk, self._subnet.layout.mask(chunk))",
        new="self._set(chunk, WHOLE)",
        why="the gateway and what else is not for pods is granted",
    ),
    Mutant(
        name="taken-from-a-pod",
        file="core/pool/states.py",
        old="AddressEvent.WITHDRAWN: State.ORPHANED,",
        new="AddressEvent.WITHDRAWN: None,",
        why="an address that the cluster withdraws disappears from under its pod",
    ),
    Mutant(
        name="there-by-name",
        file="controller/nodes/node_reconciler.py",
        old="gone = known - {uid_of(node)}",
        new="gone = frozenset() if node else known",
        why="a Node counts as there as long as another one has its name",
    ),
    Mutant(
        name="no-quarantine",
        file="allocator/store/subnet_transaction.py",
        old="until = self.now + self.rules.quarantine_seconds",
        new="until = self.now",
        why="what a removed node may still use is granted to another",
    ),
    Mutant(
        name="leak-not-confirmed",
        file="agent/pool/leak_collector.py",
        old="alive = await self._is_alive(owner)",
        new="alive = False",
        why="a suspected sandbox is collected although its pod lives in it",
    ),
    Mutant(
        name="late-sandbox-not-suspected",
        file="agent/pool/leak_collector.py",
        old="self._journaled.lives(owner)",
        new="self._journaled.suspects.put_off(owner, self._clock.monotonic())",
        why="what a pod's late ADD took stays taken, because its living sandbox is the older one",
    ),
    Mutant(
        name="absence-believed",
        file="controller/nodes/node_reconciler.py",
        old="node = await get_if_there(self._context.cluster, Node, name)",
        new="pass",
        why="a node that a copy lacks is taken for gone, without a fresh read",
        test="tests/controller/test_nodes.py::test_a_node_that_a_stale_copy_lacks_loses_nothing",
    ),
    Mutant(
        name="answer-before-the-write",
        file="agent/networks/pool_loop.py",
        old="await self._write(pool, copy, gives_addresses=bool(decided.placed))",
        new="asyncio.ensure_future(self._write(pool, copy, gives_addresses=bool(decided.placed)))",
        why="an ADD of a secondary network is answered before the pool's write is acknowledged",
        networks=4,
    ),
    Mutant(
        name="foreign-reservation-ignored",
        file="core/networks/round.py",
        old="self._waiting.append(offer.add)",
        new="self._place(offer)",
        why="an address that is reserved for another pod is handed out",
        networks=4,
    ),
    Mutant(
        name="unreserved-by-name",
        file="agent/networks/reservation_objects.py",
        old="await self._cluster.delete(*place, uid=seen.uid, resource_version=seen.resource_version)",
        new="await self._cluster.delete(*place)",
        why="a late DEL gives up what another pod has reserved since",
        networks=4,
    ),
    Mutant(
        name="reserved-no-more-for-an-earlier-sandbox",
        file="core/networks/round.py",
        old="if (holder := self._copy.allocations.holder(address)) is not None:",
        new="if (holder := None) is not None:",
        why="an ADD that came to nothing gives up what its pod's earlier sandbox has in the pool",
        networks=4,
    ),
    Mutant(
        name="entry-freed-before-its-pool",
        file="controller/slices/range_reconciler.py",
        old="await self._removal.collect(name, freed, plan.kept, of)",
        new="pass",
        why="a slice is given to another node while the pool of the former one is there",
        networks=4,
    ),
    Mutant(
        name="closed-for-good",
        file="core/subnet/placement.py",
        old="return max(before, _power_of_two(subnet.at_least * of, subnet.containers * times))",
        new="return before",
        why="a subnet that was full once shows no room again, and pods wait for a node while addresses are free",
        placement=True,
    ),
    Mutant(
        name="outlived-pods-deducted",
        file="agent/request/pod_requests.py",
        old="return max(len(self._using) - outlived, needed) - self._requested",
        new="return max(len(self._using), needed) - self._requested",
        why="pods that outlived their Node are deducted from what the next one publishes, which did not count them",
        placement=True,
    ),
    Mutant(
        name="waiting-add-served-out-of-contact",
        file="agent/api/address_service.py",
        old="if self._waiting and self._readiness.is_complete and self._readiness.is_in_contact:",
        new="if self._waiting and self._readiness.is_complete:",
        why="an ADD that waits is served by an agent whose Node may be gone",
        test="tests/agent/test_out_of_contact.py::test_an_add_that_waits_is_not_served_while_the_agent_is_out_of_contact",
    ),
    Mutant(
        name="contact-by-any-watch",
        file="agent/request/readiness.py",
        old="return self._follower.silent_seconds() < self._contact_timeout_seconds",
        new="return min(self._pods.silent_seconds(), self._follower.silent_seconds()) < self._contact_timeout_seconds",
        why="a watch of pods proves contact while the one that would show the Node's removal is dead",
        test="tests/agent/test_out_of_contact.py::test_contact_is_that_of_the_watch_that_shows_a_removal_whatever_other_watches_hear",
    ),
    Mutant(
        name="uid-confirmed-once",
        file="agent/request/config_follower.py",
        old="if identity != self._confirmed:",
        new="if self._confirmed is None:",
        why="whose NodeNetworkConfig it is is read for the first one only",
        test="tests/agent/test_belonging.py::test_a_config_that_becomes_another_nodes_is_not_gone_by_though_its_first_owner_was_confirmed",
    ),
    Mutant(
        name="sweep-by-name",
        file="controller/nodes/sweep.py",
        old="present = frozenset(node.metadata.uid for node in self._context.nodes.items())",
        new="present = frozenset(uid for uid in known if any(node.metadata.name == known[uid] for node in self._context.nodes.items()))",
        why="what an earlier Node left is not found at the start of a term if another one has its name",
        test="tests/controller/test_nodes.py::test_what_an_earlier_node_of_a_present_name_left_is_found_at_the_start_by_its_uid",
    ),
    Mutant(
        name="withdrawn-before-settled",
        file="agent/request/config_follower.py",
        old="if is_settled(config):",
        new="if networks:",
        why="a network container that the controller has not answered for yet is withdrawn",
        test="tests/agent/test_belonging.py::test_a_container_that_the_controller_has_not_answered_for_yet_is_not_withdrawn",
    ),
    Mutant(
        name="earlier-sandbox-forgotten",
        file="core/networks/allocations.py",
        old="earlier=tuple(others[-_MOST_EARLIER:]),",
        new="earlier=(),",
        why="the DEL of a late ADD frees what it took over from the pod's living sandbox",
        networks=4,
    ),
)
