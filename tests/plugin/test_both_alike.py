"""The plugin in Rust and the portable script are one plugin: whatever comes, they say the same, byte for byte."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from examples import examples
from plugin.executables import SCRIPT, Outcome, Plugin
from plugin.scripted_agent import ACKNOWLEDGED, ScriptedAgent, answer, saying
from podtide.cni.versions import LATEST

pytestmark = pytest.mark.real_time

PIECES = [
    b"HTTP/1.0 200 OK",
    b"HTTP/1.1 200",
    b"HTTP/1.0 503 no",
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b"Podtide-Wait: 1",
    b"Podtide-Wait:",
    b":",
    b"0 ",
    b"1 2\n{}",
    b"2 0\n",
    b"0 3\n{}",
    b"0 00000002\n{}",
    b"0 \xd9\xa3\n",
    b"x" * 70_000,
]
WHOLE = ACKNOWLEDGED + answer(b'{"ips": []}')


@st.composite
def nearly_right(draw: st.DrawFn) -> bytes:
    """An answer in which something was cut out and something put in."""
    start = draw(st.integers(0, len(WHOLE)))
    end = draw(st.integers(start, min(len(WHOLE), start + 3)))
    return WHOLE[:start] + draw(st.binary(max_size=3)) + WHOLE[end:]


answers = nearly_right() | st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=8).map(b"".join)


@pytest.mark.slow
@examples(60)
@given(said=answers)
@example(said=WHOLE)
def test_whatever_is_answered_both_make_the_same_of_it(rust_executable: Path, said: bytes) -> None:
    with TemporaryDirectory() as directory:
        socket = Path(directory) / "agent.sock"
        with ScriptedAgent(socket, saying(said)):
            rust = Plugin(rust_executable, socket).run("ADD")
            script = Plugin(SCRIPT, socket).run("ADD")
    assert rust == script
    assert is_the_answer_in(said, rust) or rust.error.code == 11


def is_the_answer_in(said: bytes, outcome: Outcome) -> bool:
    """Whether what was printed is what was said after the head."""
    return answer(outcome.stdout, exit_status=outcome.exit_status) in said.partition(b"\r\n\r\n")[2]


texts = st.text(st.sampled_from('ab"\\:,{}[] \n\t0.é'), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(texts | st.just("cniVersion"), inner, max_size=3)
    ),
    max_leaves=8,
)
versions = st.sampled_from(["0.1.0", "0.4.0", "1.1.0", "2.0.0-rc.1"])
configurations = st.dictionaries(texts | st.just("cniVersion"), values, max_size=4) | st.builds(
    lambda before, version, after: {**before, "cniVersion": version, **after},
    st.dictionaries(texts, values, max_size=2),
    versions,
    st.dictionaries(texts, values, max_size=2),
)


@examples(40)
@given(configuration=configurations, indent=st.sampled_from([None, 2]))
def test_of_any_json_both_find_the_version_that_it_states(
    rust_executable: Path, configuration: dict[str, Any], indent: int | None
) -> None:
    stated = configuration.get("cniVersion")
    document = json.dumps(configuration, indent=indent).encode()
    nowhere = Path("/nonexistent/agent.sock")
    rust = Plugin(rust_executable, nowhere).run("ADD", configuration=document)
    assert rust == Plugin(SCRIPT, nowhere).run("ADD", configuration=document)
    is_version = isinstance(stated, str) and could_be_a_version(stated)
    assert rust.error.cni_version == (stated if is_version else LATEST)


def could_be_a_version(text: str) -> bool:
    return bool(text) and text.isascii() and all(one.isalnum() or one in ".+-" for one in text)
