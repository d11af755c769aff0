"""The change log: what a client missed is told exactly, or it is told that it must have everything."""

from enum import Enum

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from examples import examples
from podtide.dashboard.change_log import ChangeLog, Key


class Kind(Enum):
    RECORD = "record"


NAMES = st.sampled_from("abc")


def key(name: str) -> Key:
    return Kind.RECORD, name, 0


class Client:
    """What a browser has: records by name, the notes it was told, and the last number it saw."""

    def __init__(self) -> None:
        self.records: dict[str, int] = {}
        self.notes: list[int] = []
        self.seen = -1
        self.snapshots = 0


class ClientsOfALog(RuleBasedStateMachine):
    """A log that forgets soon, and clients that come whenever they like."""

    def __init__(self) -> None:
        super().__init__()
        self.log = ChangeLog[int](most_notes=2, most_marks=1)
        self.records: dict[str, int] = {}
        self.value = 0
        self.clients = [Client(), Client()]
        self.all_notes: list[int] = []

    @rule(name=NAMES)
    def change(self, name: str) -> None:
        self.value += 1
        self.records[name] = self.value
        self.log.record(key(name))

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        if self.records.pop(name, None) is not None:
            self.log.mark(key(name))

    @rule()
    def decide(self) -> None:
        self.value += 1
        self.log.note(self.value)
        self.all_notes.append(self.value)

    @rule()
    def publish(self) -> None:
        self.log.publish()
        assert not self.log.is_open

    @rule(number=st.integers(0, 1))
    def connect(self, number: int) -> None:
        """A client that was away, for however long, catches up."""
        client = self.clients[number]
        self.log.publish()
        missed = self.log.since(client.seen) if client.seen >= 0 else None
        if missed is None:
            client.records, client.notes = dict(self.records), list(self.log.notes())
            client.snapshots += 1
        else:
            for _, name, _ in missed.keys:
                if name in self.records:
                    client.records[name] = self.records[name]
                else:
                    client.records.pop(name, None)
            client.notes += missed.notes
        client.seen = self.log.sequence
        assert client.records == self.records
        assert (
            client.notes == self.all_notes[len(self.all_notes) - len(client.notes) :]
        )  # none is missing between

    @invariant()
    def what_is_kept_is_bounded(self) -> None:
        assert len(self.log._marks) <= 1
        assert len(self.log._notes) <= 2
        assert len(self.log._records) == len(self.records)


TestClientsOfALog = ClientsOfALog.TestCase
TestClientsOfALog.settings = examples(40)


def test_a_client_that_is_up_to_date_missed_nothing() -> None:
    log = ChangeLog[int](most_notes=3)
    log.record(key("a"))
    assert log.publish()
    assert not log.publish()
    missed = log.since(log.sequence)
    assert missed is not None
    assert (missed.keys, missed.notes) == ((), ())


def test_two_changes_of_a_record_are_one() -> None:
    log = ChangeLog[int](most_notes=3)
    for _ in range(5):
        log.record(key("a"))
        log.publish()
    missed = log.since(0)
    assert missed is not None
    assert missed.keys == (key("a"),)


def test_a_client_that_cannot_be_told_what_went_must_have_everything() -> None:
    log = ChangeLog[int](most_notes=3, most_marks=1)
    for name in "abc":
        log.record(key(name))
    log.publish()
    for name in "ab":
        log.mark(key(name))
        log.publish()
    assert log.since(1) is None
    missed = log.since(2)
    assert missed is not None
    assert missed.keys == (key("b"),)


def test_a_client_that_missed_more_notes_than_are_kept_must_have_everything() -> None:
    log = ChangeLog[int](most_notes=2)
    for number in range(4):
        log.note(number)
        log.publish()
    assert log.since(1) is None
    missed = log.since(2)
    assert missed is not None
    assert missed.notes == (2, 3)


def test_a_number_of_another_process_is_not_known() -> None:
    log = ChangeLog[int](most_notes=3)
    log.record(key("a"))
    log.publish()
    assert log.since(7) is None


@given(st.lists(NAMES, max_size=50))
def test_what_is_told_is_as_long_as_what_changed_and_not_as_what_happened(names: list[str]) -> None:
    log = ChangeLog[int](most_notes=3)
    for name in names:
        log.record(key(name))
        log.publish()
    missed = log.since(0)
    assert missed is not None
    assert {each[1] for each in missed.keys} == set(names)
    assert len(missed.keys) == len(set(names))
