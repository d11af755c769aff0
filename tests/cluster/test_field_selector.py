from hypothesis import given
from hypothesis import strategies as st

from podtide.cluster.embedded.selectors import FieldTerm, parse_selector
from podtide.cluster.field_selector import field_is


@given(st.text())
def test_a_field_selector_means_the_value_it_was_made_of_whatever_is_in_that(value: str) -> None:
    selector = parse_selector("", field_is("metadata.name", value), "", ("metadata.name",))
    assert selector.fields == (FieldTerm("metadata.name", value),)
