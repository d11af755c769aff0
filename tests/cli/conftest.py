"""Run `podtide` in this process, through the same `main` a shell would start."""

import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from podtide.cli import main


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def podtide(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["podtide", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        out, err = capsys.readouterr()
        return Outcome(int(stopped.value.code or 0), out, err)

    return run
