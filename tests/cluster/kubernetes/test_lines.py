import itertools

from hypothesis import given
from hypothesis import strategies as st

from podtide.cluster.kubernetes.decoding import LineSplitter


@given(
    lines=st.lists(st.binary(min_size=1).filter(lambda line: b"\n" not in line)),
    cuts=st.lists(st.integers(0, 200)),
)
def test_wherever_the_stream_is_cut_the_lines_are_the_same(lines: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    bounds = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    splitter = LineSplitter()
    found = [line for start, end in itertools.pairwise(bounds) for line in splitter.feed(stream[start:end])]
    assert found == lines
    assert not splitter.is_within_a_line


def test_a_stream_that_ends_within_a_line_shows() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"one\ntw") == [b"one"]
    assert splitter.is_within_a_line
    assert splitter.feed(b"o\n\n\n") == [b"two"]
    assert not splitter.is_within_a_line
