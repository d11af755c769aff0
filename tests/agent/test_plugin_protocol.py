"""Calls and answers on their way between plugin and agent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.agent.api.plugin_protocol import Answer, decode_answer, decode_call, encode_answer, encode_call
from podtide.core.errors import InvalidInput

NAMES = st.text(st.characters(exclude_characters="\0=", exclude_categories=["Cs"]), min_size=1, max_size=12)
VALUES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@given(st.dictionaries(NAMES, VALUES, max_size=5), st.binary(max_size=60))
def test_a_call_is_read_as_it_was_written(environment: dict[str, str], stdin: bytes) -> None:
    assert decode_call(encode_call(environment, stdin)) == (environment, stdin)


@given(st.binary(max_size=80))
def test_any_body_is_a_call_or_is_refused(body: bytes) -> None:
    try:
        environment, stdin = decode_call(body)
    except InvalidInput:
        return
    assert all(environment)
    assert body.endswith(stdin)


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=3), st.data())
def test_a_body_cut_off_within_its_environment_is_no_call(
    environment: dict[str, str], data: st.DataObject
) -> None:
    whole = encode_call(environment, b"")
    cut = whole[: data.draw(st.integers(0, len(whole) - 2))]
    with pytest.raises(InvalidInput):
        decode_call(cut)


@pytest.mark.parametrize("body", [b"CNI_COMMAND\0\0", b"=ADD\0\0", b"CNI_ARGS=\xff\0\0", b"\xff"], ids=repr)
def test_what_is_no_variable_is_named_in_the_error(body: bytes) -> None:
    with pytest.raises(InvalidInput) as refused:
        decode_call(body)
    assert "\n" not in str(refused.value)


@given(st.integers(0, 255), st.binary(max_size=60))
def test_an_answer_is_read_as_it_was_written(exit_status: int, output: bytes) -> None:
    answer = Answer(exit_status, output)
    assert decode_answer(encode_answer(answer)) == answer


@given(st.binary(min_size=1, max_size=60), st.data())
def test_an_answer_that_ends_early_is_none(output: bytes, data: st.DataObject) -> None:
    whole = encode_answer(Answer(0, output))
    assert decode_answer(whole[: data.draw(st.integers(0, len(whole) - 1))]) is None


@pytest.mark.parametrize("body", [b"0 3\nfour", b"x 1\n1", b"0 -1\n", b"0\n", b"\n"], ids=repr)
def test_what_is_no_answer_is_none(body: bytes) -> None:
    assert decode_answer(body) is None
