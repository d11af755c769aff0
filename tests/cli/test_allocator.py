"""`podtide allocator`: what it refuses before it opens anything."""

import pytest

from cli.conftest import Run

DATABASE = ("--database", "sqlite:///:memory:")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Missing option '--database'"),
        ((*DATABASE, "--listen", "0.0.0.0:8080"), "give --tokens FILE, or listen on 127.0.0.1"),
        ((*DATABASE, "--listen", "8080"), "is no address to listen on"),
        ((*DATABASE, "--tls-cert", "/dev/null"), "give both --tls-cert and --tls-key, or neither"),
        ((*DATABASE, "--tokens", ""), "the path is empty: give the path of a file, or leave out the option"),
        ((*DATABASE, "--cooldown", "soon"), "--cooldown=soon is refused"),
        (
            (*DATABASE, "--quarantine", "1s"),
            "--quarantine=1s is refused: give more than contact_timeout, which is 5m",
        ),
        ((*DATABASE, "--refresh", "soon"), "--refresh=soon is refused"),
        (("--database", "mysql://x", "--listen", "127.0.0.1:0"), "'mysql' is refused"),
    ],
)
def test_what_cannot_be_run_by_is_refused_in_one_line(
    podtide: Run, arguments: tuple[str, ...], words: str
) -> None:
    outcome = podtide("allocator", *arguments)
    assert (outcome.status, outcome.out) == (2, "")
    assert words in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_database_that_cannot_be_reached_is_a_failure(podtide: Run) -> None:
    outcome = podtide("allocator", "--database", "postgresql://me@127.0.0.1:1/subnets")
    assert (outcome.status, outcome.err.count("\n")) == (1, 1)
    assert "127.0.0.1:1/subnets" in outcome.err
