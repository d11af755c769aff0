"""Programs as tasks: stopped, killed, and failing where it is heard."""

import asyncio
from typing import NoReturn

import pytest

from podtide.simulation.nodes.programs import ProgramFailed, Programs


class Wire:
    """A line that remembers whether it was cut."""

    is_cut = False

    def cut(self) -> None:
        self.is_cut = True


class Tidy:
    """A program that tidies up when it is asked to end."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.tidied_over_a_line = False
        self.states = ["made"]

    async def run(self) -> None:
        self.states.append("running")
        try:
            await asyncio.Event().wait()
        finally:
            self.states.append("ended")
            self.tidied_over_a_line = not self._wire.is_cut


async def broken() -> NoReturn:
    await asyncio.sleep(1)
    raise ValueError("it broke")


async def test_a_stopped_program_can_tidy_up_and_a_killed_one_reaches_nobody() -> None:
    for end, could_tidy in ((Programs.stop, True), (Programs.kill, False)):
        programs, wire = Programs(), Wire()
        program = Tidy(wire)
        programs.start("tidy", program.run(), wire)
        await asyncio.sleep(1)
        assert program.states == ["made", "running"]
        await end(programs, "tidy")
        assert program.states == ["made", "running", "ended"]
        assert program.tidied_over_a_line == could_tidy


async def test_a_program_that_ended_by_an_error_is_told_of() -> None:
    programs = Programs()
    programs.start("agent", broken())
    programs.check()
    await asyncio.sleep(2)
    with pytest.raises(ProgramFailed, match="agent ended by ValueError: it broke"):
        programs.check()
    with pytest.raises(ProgramFailed):
        await programs.stop("agent")


async def test_closing_ends_everything_and_what_is_not_there_is_ended_already() -> None:
    programs, wire = Programs(), Wire()
    programs.start("tidy", Tidy(wire).run(), wire)
    await asyncio.sleep(0)
    await programs.close()
    assert wire.is_cut
    await programs.stop("tidy")
    await programs.kill("tidy")
