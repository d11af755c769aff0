"""One word of a configuration changes, and nothing else does."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podtide.cni.config_text import with_ipam_type


def migrated(text: str) -> str:
    return with_ipam_type(text, "whereabouts", "podtide")


def test_the_type_changes_and_order_spaces_and_unknown_keys_stay() -> None:
    text = '{ "zeta" : 1.10,\n "ipam":{"range":"10.0.0.0/24","type" :\t"whereabouts" , "X": [ {} ]}, "type":"macvlan" }\n'
    assert migrated(text) == text.replace('"whereabouts"', '"podtide"')


def test_every_plugin_of_a_list_is_looked_at() -> None:
    text = (
        '{"plugins": [{"type":"bridge","ipam":{"type":"whereabouts"}}, {"type":"tuning"}, 7, '
        '{"ipam":{"type":"host-local"}}, {"IPAM":{"Type":"whereabouts"}}]}'
    )
    assert migrated(text) == text.replace('"whereabouts"', '"podtide"')


def test_the_word_elsewhere_is_left_alone() -> None:
    text = (
        '{"name":"whereabouts","type":"whereabouts","ipam":{"type":"podtide","log_file":"whereabouts"},'
        '"args":{"ipam":{"type":"whereabouts"}}}'
    )
    assert migrated(text) == text


def test_a_type_written_with_escapes_is_the_same_word() -> None:
    assert migrated('{"ipam":{"type":"\\u0077hereabouts"}}') == '{"ipam":{"type":"podtide"}}'


def test_an_object_without_members_and_an_ipam_that_is_none_are_left_alone() -> None:
    for text in ("{}", '{"ipam":{}}', '{"ipam":"whereabouts","plugins":{}}', '{"plugins":[]}'):
        assert migrated(text) == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("whereabouts"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["ipam", "type", "plugins", "Plugins", "IPAM", "name"]) | st.text(max_size=4)
IPAM = st.dictionaries(KEYS, st.just("whereabouts") | JSON, max_size=4)
PLUGIN = st.dictionaries(KEYS, IPAM | JSON, max_size=4)
CONFIG = st.dictionaries(KEYS, IPAM | JSON | st.lists(PLUGIN, max_size=3), max_size=4)


def expected(document: Any) -> Any:
    """The same by way of decoding, which may reorder nothing here but forgets how it was written."""
    changed: dict[str, Any] = {}
    for key, value in document.items():
        if key.lower() == "ipam" and isinstance(value, dict):
            changed[key] = {
                name: "podtide" if name.lower() == "type" and inner == "whereabouts" else inner
                for name, inner in value.items()
            }
        elif key.lower() == "plugins" and isinstance(value, list):
            changed[key] = [expected(item) if isinstance(item, dict) else item for item in value]
        else:
            changed[key] = value
    return changed


@given(CONFIG, st.sampled_from([None, 0, 1, "\t"]), st.booleans())
def test_it_is_what_decoding_changing_and_encoding_gives(
    document: Any, indent: str | int | None, escaped: bool
) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=escaped)
    assert migrated(text) == json.dumps(expected(document), indent=indent, ensure_ascii=escaped)
