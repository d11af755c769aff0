"""A YAML document with its line numbers, for error messages."""

import re
from typing import Any

import yaml

from podtide.core.errors import InvalidInput

_PATH = re.compile(r"\.([^.\[\]`]+)|\[(\d+)\]")


class InvalidScenario(InvalidInput):
    """A scenario file that cannot be played. The message begins with the file and the line."""


class Document:
    """One file's content, with the line of each part."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        try:
            loader = yaml.SafeLoader(text)
            root = loader.get_single_node()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else 1
            raise InvalidScenario(f"{file}:{line}: is not valid YAML: {error.problem}") from None
        except yaml.YAMLError as error:
            raise InvalidScenario(f"{file}: is not valid YAML: {error}") from None
        if root is None:
            raise InvalidScenario(f"{file}: is empty: give a title, a why, nodes, a subnet and a story")
        self._root = root
        self._refuse_repeated_keys(root)
        self.content: Any = loader.construct_document(root)

    def line(self, path: str) -> int:
        """The line of a path such as `$.story[3].expect`, or of the last part of the path that exists."""
        node, line = self._root, self._root.start_mark.line
        for key, index in _PATH.findall(path):
            if isinstance(node, yaml.MappingNode):
                found = next(((name, value) for name, value in node.value if name.value == key), None)
                if found is None:
                    break
                line, node = found[0].start_mark.line, found[1]
            elif isinstance(node, yaml.SequenceNode) and index and int(index) < len(node.value):
                node = node.value[int(index)]
                line = node.start_mark.line
            else:
                break
        return line + 1

    def refuse(self, path: str, words: str) -> InvalidScenario:
        """The error for a path: file, line and message."""
        return InvalidScenario(f"{self._file}:{self.line(path)}: {words}")

    def _refuse_repeated_keys(self, node: yaml.Node) -> None:
        """Refuse repeated keys: YAML would silently take the last value, and half a step would vanish."""
        if isinstance(node, yaml.SequenceNode):
            for each in node.value:
                self._refuse_repeated_keys(each)
        if isinstance(node, yaml.MappingNode):
            seen = set()
            for key, value in node.value:
                if key.value in seen:
                    line = key.start_mark.line + 1
                    raise InvalidScenario(f"{self._file}:{line}: {key.value!r} is given twice: give it once")
                seen.add(key.value)
                self._refuse_repeated_keys(value)
