"""`podtide explain`, as people and programs use it."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Run


def answer(podtide: Run, command: str) -> Any:
    outcome = podtide("explain", *command.split(), "-o", "json")
    assert (outcome.status, outcome.err) == (0, "")
    return json.loads(outcome.out)


@pytest.mark.parametrize(
    ("flags", "request_", "bound"),
    [
        ("", 48, "formula"),
        ("--primaries 1", 47, "formula"),
        ("--exhausted", 26, "formula"),
        ("--exhausted --primaries 1", 26, "floor"),
        ("--max-ips 30", 30, "max"),
    ],
)
def test_the_request_for_25_pods(podtide: Run, flags: str, request_: int, bound: str) -> None:
    found = answer(podtide, f"request --demand 25 --batch 16 --buffer 0.5 {flags}")
    assert (found["request"], found["bound"]) == (request_, bound)
    assert found["free"] == request_ - 25
    assert found["aligned"] == (26 if "--exhausted" in flags else 48)


def test_the_request_in_words_has_the_numbers_in_the_formula(podtide: Run) -> None:
    outcome = podtide("explain", "request", "--demand", "25", "--primaries", "1")
    assert outcome.out.splitlines() == [
        "request 47 = 16·⌈0.5 + 25/16⌉ - 1; demand 25, 22 free",
        "  aligned = B·⌈mf + U/B⌉ = 16·⌈0.5 + 25/16⌉ = 48",
        "  request = min(max, max(aligned - P, U + 1)) = min(250, max(48 - 1, 25 + 1)) = 47",
        "  free    = request - U = 47 - 25 = 22",
        "  thresholds: m = mf·B = 8, M = (mf + 1)·B = 24",
    ]


def test_a_batch_over_the_maximum_is_clamped_with_a_warning(podtide: Run) -> None:
    outcome = podtide("explain", "request", "--demand", "4", "--batch", "300", "-o", "json")
    assert json.loads(outcome.out)["batch"] == 250
    assert outcome.err == "podtide: warning: batch 300 is larger than the node's maximum; 250 is used\n"


@pytest.mark.parametrize(
    ("flags", "exhausted", "changed"),
    [
        ("--reserved 231", True, True),
        ("--reserved 230", False, False),
        ("--reserved 230 --exhausted", True, False),
        ("--reserved 204 --exhausted", False, True),
    ],
)
def test_exhaustion(podtide: Run, flags: str, exhausted: bool, changed: bool) -> None:
    found = answer(podtide, f"exhaustion --capacity 256 --lower 0.8 --upper 0.9 {flags}")
    assert (found["exhausted"], found["changed"]) == (exhausted, changed)


def test_exhaustion_in_words(podtide: Run) -> None:
    outcome = podtide("explain", "exhaustion", "--capacity", "256", "--reserved", "231")
    assert outcome.out.splitlines() == [
        "now exhausted: R = 231 > T·Q = 0.9·256 = 230.4",
        "  turns on when R > 230.4, off when R < 204.8; now R = 231",
    ]


@pytest.mark.parametrize(
    ("flags", "batch", "buffer", "step"),
    [
        ("--nodes 8x1", 16, 0.5, "Unchanged"),
        ("--nodes 8×15", 8, 0.5, "BatchReduced"),
        ("--nodes 8x15@16 --in-force 8 --recent", 8, 0.5, "Unchanged"),
        ("--nodes 8x1 --in-force 2", 16, 0.5, "BatchRaised"),
        ("--nodes 4x1 --nodes 4x12 --in-force 4", 16, 0.5, "BatchRaised"),
        ("--nodes 8x1 --quarantined 80 --in-force 8", 8, 0.5, "Unchanged"),
        ("--nodes 7x22 --nodes 1x12 --in-force 8 --fixed 8", 8, 0.5, "Unchanged"),
        ("--nodes 7x22 --nodes 1x12 --in-force 8 --min-batch 8", 8, 0.5, "Unchanged"),
        ("--nodes 8x1 --batch 8", 8, 0.5, "Unchanged"),
        ("--nodes 8x1 --in-force 16 --batch 8", 8, 0.5, "BatchConfigured"),
        ("--nodes 9x29 --in-force 1 --reserved 253 --owed 26", 1, 0, "Starved"),
        ("--nodes 8x20 --starved --reserved 240", 8, 0.5, "Fed"),
    ],
)
def test_the_batch_in_force(podtide: Run, flags: str, batch: int, buffer: float, step: str) -> None:
    found = answer(podtide, f"batch --capacity 253 {flags}")
    assert (found["batch"], found["buffer"], found["step"]) == (batch, buffer, step)
    assert found["changed"] == (step != "Unchanged")
    assert found["rungs"][0]["batch"] == 1


def test_the_batch_in_words(podtide: Run) -> None:
    outcome = podtide("explain", "batch", "--capacity", "253", "--nodes", "8x1", "--in-force", "8")
    assert outcome.out.splitlines() == [
        "batch 16, buffer 0.5 (BatchRaised): at batch 16 R stays at 128 or less, under t·Q = 0.8·253 = 202.4",
        "  thresholds: R = 64 < t·Q = 0.8·253 = 202.4",
        "  BATCH  R⁻   R⁺   OF Q    FITS",
        "  16     128  128  50.6 %  yes   in force",
        "  8      64   64   25.3 %  yes",
        "  4      32   32   12.6 %  yes",
        "  2      24   24   9.5 %   yes",
        "  1      24   24   9.5 %   yes",
    ]


@pytest.mark.parametrize("batch", ["0", "-4"])
def test_a_batch_in_force_that_is_none_is_refused(podtide: Run, batch: str) -> None:
    outcome = podtide("explain", "batch", "--capacity", "253", f"--in-force={batch}")
    assert (outcome.status, outcome.out) == (2, "")
    assert f"batch {batch} is too small: addresses come in batches of at least 1" in outcome.err


@pytest.mark.parametrize("nodes", ["8", "8y15", "x15", "8x15@", "-8x15", "8x15@16@8"])
def test_nodes_that_are_written_otherwise_are_refused_with_an_example(podtide: Run, nodes: str) -> None:
    outcome = podtide("explain", "batch", "--capacity", "253", f"--nodes={nodes}")
    assert outcome.status == 2
    assert f"--nodes '{nodes}' is refused: give COUNT×DEMAND" in outcome.err
    assert "Traceback" not in outcome.err


def test_slices_are_listed_in_the_pools_order(podtide: Run) -> None:
    assert answer(podtide, "slices --range 10.0.0.0/16 --slice-size /24 --nodes c,a,b") == [
        {"node": "c", "slice": "10.0.0.0/24"},
        {"node": "a", "slice": "10.0.1.0/24"},
        {"node": "b", "slice": "10.0.2.0/24"},
    ]


def test_a_node_for_which_no_slice_is_left_waits(podtide: Run) -> None:
    found = answer(podtide, "slices --range 10.0.0.0/24 --slice-size 25 --nodes a,b,late")
    assert found[2] == {"node": "late", "slice": None}
    outcome = podtide(
        "explain", "slices", "--range", "10.0.0.0/24", "--slice-size", "25", "--nodes", "a,b,late"
    )
    assert outcome.out.splitlines() == [
        "10.0.0.0/24 has 2 slices of /25",
        "  a     10.0.0.0/25",
        "  b     10.0.0.128/25",
        "  late  waits: no slice is left",
    ]


def test_an_assignment_from_a_file_with_warnings_for_what_was_tolerated(podtide: Run, tmp_path: Path) -> None:
    conf = tmp_path / "ipam.json"
    conf.write_text(
        '{"type": "whereabouts", "range": "192.168.2.225/28", "range_start": "10.0.0.1", "gateway": "192.168.2.226"}'
    )
    outcome = podtide("explain", "assign", "--ipam", str(conf), "--taken", "192.168.2.225", "-o", "json")
    assert (outcome.status, json.loads(outcome.out)["address"]) == (0, "192.168.2.227")
    assert outcome.err.startswith("podtide: warning: ")
    assert "10.0.0.1" in outcome.err


def test_an_assignment_from_standard_input(podtide: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.TextIOWrapper(
        io.BytesIO(b'{"type": "podtide", "range": "10.0.0.0/30", "addresses": [{"address": "10.9.0.5/24"}]}')
    )
    monkeypatch.setattr(sys, "stdin", text)
    outcome = podtide("explain", "assign", "--ipam", "-")
    assert outcome.out.splitlines() == [
        "10.0.0.1/30 from 10.0.0.0/30",
        "  usable 10.0.0.1 to 10.0.0.2: 2 of 4 addresses, 0 taken",
        "10.9.0.5/24 (static)",
    ]


def test_an_assignment_shows_slice_and_what_was_withheld(podtide: Run, tmp_path: Path) -> None:
    conf = tmp_path / "ipam.json"
    conf.write_text(
        '{"type": "podtide", "range": "10.0.0.0/16", "node_slice_size": "/24", "exclude": ["10.0.0.0/28"]}'
    )
    outcome = podtide("explain", "assign", "--ipam", str(conf))
    assert outcome.out.splitlines() == [
        "10.0.0.16/16 from 10.0.0.0/16",
        "  slice 10.0.0.0/24, the first with a free address; a slice keeps its own first and last back",
        "  usable 10.0.0.16 to 10.0.255.254: 65519 of 65536 addresses, 0 taken",
        "  15 withheld by excludes",
    ]


IPAM = '{"type": "whereabouts", "range": "%s", "exclude": ["%s"]}'


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (
            "exhaustion --capacity 10 --reserved 1 --lower 0.9 --upper 0.8",
            "thresholds 0.9 and 0.8 do not make a band",
        ),
        ("request --demand 5 --batch 0", "batch 0 is too small: addresses come in batches of at least 1"),
        ("request --demand -5", "demand -5 is negative: it is a count of pods, 0 or more"),
        (
            "request --demand 5 --buffer half",
            "--buffer 'half' is no number: give a decimal or a fraction",
        ),
        ("request --demand many", "--demand 'many' is not a whole number of at most 18 digits"),
        (f"request --demand {'9' * 5000}", "9…' is not a whole number of at most 18 digits"),
        ("request --demand 5 --buffer 1e99999999", "--buffer '1e99999999' is no number"),
        ("request", "Missing option '--demand'."),
        ("slices --range 10.0.0.0/99 --slice-size /24 --nodes a", "10.0.0.0/99"),
        (
            "slices --range 10.0.0.0/24 --slice-size /16 --nodes a",
            "slice size /16 is larger than its range 10.0.0.0/24",
        ),
        ("slices --range 10.0.0.1-fd00::5/64 --slice-size /70 --nodes a", "fd00::5"),
        ("slices --range 10.0.0.0/24 --slice-size /26 --nodes ,", "contains no name"),
        ("slices --range 10.0.0.0/24 --slice-size /26 --nodes a,b,a", "names a more than once"),
        ("assign --ipam /nowhere/at/all", "cannot read --ipam /nowhere/at/all: No such file or directory"),
        ("guess", "No such command 'guess'."),
    ],
)
def test_bad_input_is_one_line_and_exit_2(podtide: Run, command: str, says: str) -> None:
    outcome = podtide("explain", *command.split())
    assert (outcome.status, outcome.out) == (2, "")
    assert says in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (IPAM % ("10.0.0.0/24", "nope"), "nope"),
        (IPAM % ("banana", "10.0.0.1"), "banana"),
        ("{", "is not JSON"),
        ("", "is empty; it should be a JSON object"),
        (" " * (1 << 20) + "{}", "is larger than 1048576 bytes"),
        ("[]", ""),
        ('{"type": "podtide"}', "node's pool"),
    ],
)
def test_a_bad_configuration_is_one_line_and_exit_2(
    podtide: Run, tmp_path: Path, text: str, says: str
) -> None:
    conf = tmp_path / "ipam.json"
    conf.write_text(text)
    outcome = podtide("explain", "assign", "--ipam", str(conf))
    assert (outcome.status, outcome.out) == (2, "")
    assert says in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_range_of_which_nothing_is_left_says_what_took_it(podtide: Run, tmp_path: Path) -> None:
    conf = tmp_path / "ipam.json"
    conf.write_text('{"type": "podtide", "range": "10.0.0.0/24", "exclude": ["0.0.0.0/0"]}')
    outcome = podtide("explain", "assign", "--ipam", str(conf))
    assert (
        "no address of 10.0.0.0/24 may be handed out: start, end, excludes and gateway leave none"
        in outcome.err
    )


def test_counts_that_are_not_exact_are_not_shown_as_if(podtide: Run, tmp_path: Path) -> None:
    conf = tmp_path / "ipam.json"
    conf.write_text('{"type": "podtide", "range": "fd00::/64"}')
    outcome = podtide("explain", "assign", "--ipam", str(conf))
    assert "2^53 or more of 2^53 or more addresses, 0 taken" in outcome.out


def test_a_full_range_is_one_line_and_exit_1(podtide: Run, tmp_path: Path) -> None:
    conf = tmp_path / "ipam.json"
    conf.write_text('{"type": "podtide", "range": "10.0.0.0/30"}')
    outcome = podtide("explain", "assign", "--ipam", str(conf), "--taken", "10.0.0.1,10.0.0.2")
    assert outcome.status == 1, "nothing is wrong with the input: an address may be freed"
    assert "10.0.0.0/30" in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_pin_and_a_smallest_batch_exclude_each_other_as_in_a_cluster_subnet(podtide: Run) -> None:
    about = ("--capacity", "253", "--nodes", "8x3")
    refused = podtide("explain", "batch", *about, "--fixed", "8", "--min-batch", "4")
    assert refused.status == 2
    assert "--fixed and --min-batch exclude each other" in refused.err
