import pytest

from cni_programs import CNITOOL, LIBCNI_GC, WHEREABOUTS, WHEREABOUTS_SLICES
from go_program import GoProgram


@pytest.mark.parametrize(
    ("program", "version"), [(CNITOOL, "1.3.0"), (WHEREABOUTS, "0.9.4"), (WHEREABOUTS_SLICES, "0.9.4")]
)
def test_the_version_is_that_of_go_mod_and_the_program_is_a_tool_of_it(
    program: GoProgram, version: str
) -> None:
    assert program.pins.program == version
    assert program.pins.go == "1.25.5"
    assert f"\n\t{program.package}\n" in (program.module / "go.mod").read_text()


def test_what_is_ours_of_it_is_built_on_the_libcni_of_cnitool() -> None:
    assert LIBCNI_GC.pins == CNITOOL.pins
    assert (LIBCNI_GC.module / LIBCNI_GC.package.removeprefix("podtide/cni-programs/") / "main.go").exists()
