"""Names as arguments, refused before any call, in the words of the program that would refuse them later."""

from collections.abc import Callable
from typing import Any

import click

from podtide.core.errors import InvalidInput
from podtide.core.exact import shortened
from podtide.resources.metadata_keys import SUBNET_LABEL
from podtide.resources.names import LONGEST_LABEL_VALUE, LONGEST_NAME, is_namespace, is_object_name


def require_object_name(name: str, source: str) -> None:
    """Refuse a name that is not valid for a Kubernetes object; `source` says where it comes from."""
    if not is_object_name(name):
        raise InvalidInput(
            f"{source} {shortened(name)!r} is not a valid Kubernetes name: use lower-case letters, digits, '-' and '.', "
            f"with a letter or digit at both ends, at most {LONGEST_NAME}"
        )


def _require_new_subnet_name(name: str, source: str) -> None:
    require_object_name(name, source)
    if len(name) > LONGEST_LABEL_VALUE:
        raise InvalidInput(
            f"{source} {shortened(name)!r} has {len(name)} characters: give at most {LONGEST_LABEL_VALUE}, because nodes "
            f"choose a subnet by the value of the label {SUBNET_LABEL}"
        )


def _require_namespace(name: str, source: str) -> None:
    if not is_namespace(name):
        raise InvalidInput(
            f"{source} {shortened(name)!r} is not a valid name of a namespace: use lower-case letters, digits and '-', with a letter or "
            f"digit at both ends, at most {LONGEST_LABEL_VALUE}"
        )


class NameType(click.ParamType[str]):
    """A name that passes a check. An empty one counts as not given, unless it `may_not_be_empty`."""

    name = "name"

    def __init__(self, require: Callable[[str, str], None], *, may_not_be_empty: bool = False) -> None:
        self._require = require
        self._may_not_be_empty = may_not_be_empty

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, checked."""
        del ctx
        text = str(value)
        if self._may_not_be_empty and not text:
            raise InvalidInput(f"{_called(param)} is empty: give a name, or leave out the option")
        if text:
            self._require(text, _called(param))
        return text


def _called(param: click.Parameter | None) -> str:
    """`--subnet` for an option, `NAME` for an argument."""
    if isinstance(param, click.Option):
        return param.opts[-1]
    return param.human_readable_name if param else "name"


def _require_allocator_name(name: str, source: str) -> None:
    from podtide.allocator.limits import check_names  # noqa: PLC0415 - an agent has names too, and no allocator

    check_names(**{source: name})


OBJECT_NAME = NameType(require_object_name)
"""The name of a Node, or of a subnet, after which two objects are named."""
NODE_NAME = NameType(require_object_name, may_not_be_empty=True)
"""The name of this Node: an empty one, as an unset shell variable leaves it, must not lead to a guess."""
NAMESPACE = NameType(_require_namespace)
NEW_SUBNET_NAME = NameType(_require_new_subnet_name)
"""The name of a subnet to be created. One that exists may have a longer name."""
ALLOCATOR_NAME = NameType(_require_allocator_name)
"""The name of a network or a cluster, which only the allocator knows; also of a subnet that exists."""
