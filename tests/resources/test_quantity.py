import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtide.resources.quantity import read_count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *(
            ("0", 0),
            ("250", 250),
            ("+250", 250),
            ("007", 7),
            ("1k", 1000),
            ("2M", 2_000_000),
            ("3G", 3 * 10**9),
        ),
        *(("1Ki", 1024), ("2Mi", 2 * 2**20), ("1Ei", 2**60), ("1E", 10**18), ("1P", 10**15), ("1T", 10**12)),
        *(
            ("1e3", 1000),
            ("1E3", 1000),
            ("1e+3", 1000),
            ("2500e-2", 25),
            ("1.5k", 1500),
            ("2.", 2),
            (".5Ki", 512),
        ),
    ],
)
def test_a_quantity_is_read_as_kubernetes_reads_it(text: str, count: int) -> None:
    assert read_count(text) == count


@pytest.mark.parametrize(
    ("text", "count"), [("500m", 1), ("1500m", 2), ("1000m", 1), ("1u", 1), ("1n", 1), ("0.1", 1), ("0m", 0)]
)
def test_a_fraction_counts_as_one_more(text: str, count: int) -> None:
    assert read_count(text) == count


@pytest.mark.parametrize("text", ["9E", "10E", "9223372036854775808", "1e40", "1e999999999", "9" * 30])
def test_nothing_counts_for_more_than_64_bits_hold(text: str) -> None:
    assert read_count(text) == min(9 * 10**18 if text == "9E" else 2**63, 2**63 - 1)


def test_however_small_a_fraction_is_one() -> None:
    assert read_count("1e-999999999") == 1
    assert read_count("0e999999999") == 0


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "+", "k", "e3", "-1", "-0", "1K", "1ki", "1kk", "1 k", " 1", "1\n", "1e", "1e3k", "1e3.5"),
        *("0x10", "1_000", "1,000", "NaN", "inf", "\N{ARABIC-INDIC DIGIT SEVEN}", "++1", "1.2.3", "many"),
        pytest.param("9" * 5000, id="5000 digits"),
        pytest.param("1e" + "9" * 5000, id="an exponent of 5000 digits"),
    ],
)
def test_text_that_is_not_a_count_is_none(text: str) -> None:
    assert read_count(text) is None


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_a_plain_number_is_that_count(count: int) -> None:
    assert read_count(str(count)) == count


@given(st.integers(min_value=0, max_value=10**6), st.sampled_from([("k", 3), ("M", 6), ("G", 9), ("T", 12)]))
def test_a_suffix_and_an_exponent_of_ten_mean_the_same(count: int, unit: tuple[str, int]) -> None:
    suffix, exponent = unit
    assert read_count(f"{count}{suffix}") == read_count(f"{count}e{exponent}") == count * 10**exponent
