"""The journal's file: what is read back, what is torn, what is damaged, and how large it gets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.agent.pool import journal_file
from podtide.agent.pool.journal import Damaged, encode_record, read_records
from podtide.agent.pool.journal_file import Journal
from podtide.runtime.disk import DiskFailed, DiskFull
from podtide.runtime.memory_disk import MemoryDisk

PAYLOADS = (b'{"state":1}', b'{"did":"this"}', b"{}", b'{"did":"that","to":["a","b"]}')
CONTENT = b"".join(map(encode_record, PAYLOADS))
STARTS = [len(b"".join(map(encode_record, PAYLOADS[:n]))) for n in range(len(PAYLOADS) + 1)]

one_line = st.binary(max_size=60).map(lambda payload: payload.replace(b"\n", b" "))


def payloads(content: bytes) -> list[bytes]:
    return [record.payload for record in read_records(content).records]


def whole_records_within(length: int) -> int:
    return sum(start <= length for start in STARTS[1:])


def test_a_record_is_a_line_that_a_person_can_read() -> None:
    assert encode_record(b'{"did":"bound"}') == b'0000000f 3ab11b30 {"did":"bound"}\n'


@given(st.lists(one_line))
def test_what_was_written_is_read_back_with_where_it_begins(written: list[bytes]) -> None:
    content = b"".join(map(encode_record, written))
    found = read_records(content)
    assert [record.payload for record in found.records] == written
    assert all(content[record.start :].startswith(encode_record(record.payload)) for record in found.records)
    assert found.good_bytes == len(content)


@pytest.mark.parametrize("zeros", [0, 1, 5000])
def test_a_file_cut_anywhere_ends_with_its_last_whole_record(zeros: int) -> None:
    for length in range(len(CONTENT) + 1):
        found = read_records(CONTENT[:length] + bytes(zeros))
        whole = whole_records_within(length)
        assert len(found.records) == whole
        assert found.good_bytes == STARTS[whole]


def test_a_changed_byte_is_noticed_wherever_it_is() -> None:
    for position, byte in enumerate(CONTENT):
        for changed in {byte ^ 1, byte ^ 0x20, byte ^ 0x80, ord("0"), ord("f"), ord("\n")} - {byte}:
            damaged = CONTENT[:position] + bytes([changed]) + CONTENT[position + 1 :]
            with pytest.raises(Damaged):
                read_records(damaged)


def test_the_words_for_damage_say_where_it_is() -> None:
    damaged = CONTENT.replace(b"this", b"that", 1)
    with pytest.raises(Damaged, match=rf"^the record at byte {STARTS[1]} of {len(CONTENT)} is damaged$"):
        read_records(damaged)


@given(st.integers(0, len(CONTENT)), st.integers(0, len(CONTENT)), st.binary(max_size=40))
def test_whatever_is_put_in_the_place_of_whatever_nothing_is_read_that_was_not_written(
    start: int, end: int, other: bytes
) -> None:
    changed = CONTENT[:start] + other + CONTENT[end:]
    try:
        found = payloads(changed)
    except Damaged:
        return
    assert set(found) <= set(PAYLOADS)


@given(st.integers(1, 600))
def test_a_hole_of_zeros_with_records_behind_it_is_damage(zeros: int) -> None:
    with pytest.raises(Damaged):
        read_records(CONTENT[: STARTS[2]] + bytes(zeros) + CONTENT[STARTS[2] :])


def test_appending_goes_on_behind_what_was_good() -> None:
    disk = MemoryDisk()
    disk.replace("journal", CONTENT + b"0000")
    journal = Journal(disk, "journal", read_records(CONTENT + b"0000"))
    journal.append(b"{}", durable=False)
    assert disk.read("journal") == CONTENT + encode_record(b"{}")


def test_a_full_disk_leaves_the_journal_as_it_was_and_appending_works_again_later() -> None:
    disk = MemoryDisk()
    journal = Journal.begin(disk, "journal", b"state")
    disk.full = True
    with pytest.raises(DiskFull):
        journal.append(b"1", durable=True)
    with pytest.raises(DiskFull):
        journal.rewrite(b"other state")
    disk.full = False
    journal.append(b"2", durable=True)
    assert payloads(disk.read("journal") or b"") == [b"state", b"2"]


def test_it_is_overgrown_when_the_changes_outweigh_the_state_and_not_after_it_was_rewritten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_file, "_SLACK_BYTES", 100)
    disk = MemoryDisk()
    journal = Journal.begin(disk, "journal", b"s" * 81)  # a line of 100 bytes
    for _ in range(4):
        journal.append(b"c" * 81, durable=False)
    assert not journal.is_overgrown()
    journal.append(b"", durable=False)
    assert journal.is_overgrown()
    journal.rewrite(b"new state")
    assert not journal.is_overgrown()
    journal.append(b"next", durable=False)
    assert payloads(disk.read("journal") or b"") == [b"new state", b"next"]


def test_a_journal_that_cannot_be_rewritten_is_left_alone_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_file, "_SLACK_BYTES", 100)
    disk = MemoryDisk()
    journal = Journal.begin(disk, "journal", b"")
    while not journal.is_overgrown():
        journal.append(b"change", durable=False)
    disk.full = True
    with pytest.raises(DiskFull):
        journal.rewrite(b"state")
    disk.full = False
    assert not journal.is_overgrown()
    for _ in range(5):
        journal.append(b"change", durable=False)
    assert journal.is_overgrown()


def test_a_journal_opened_again_knows_how_much_it_may_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_file, "_SLACK_BYTES", 0)
    disk = MemoryDisk()
    for changes, is_overgrown in ((2, False), (3, True)):
        content = encode_record(b"state") + encode_record(b"change") * changes
        disk.replace("journal", content)
        assert Journal(disk, "journal", read_records(content)).is_overgrown() is is_overgrown


def test_a_closed_journal_takes_nothing_more() -> None:
    journal = Journal.begin(MemoryDisk(), "journal", b"state")
    journal.close()
    with pytest.raises(DiskFailed):
        journal.append(b"late", durable=False)
