"""Mutants made by machine from the code itself: every small way in which a decision can be wrong.

    comparison flipped      a < b becomes a <= b, a == b becomes a != b, a in b becomes a not in b, …
    condition inverted      if a: becomes if not (a):, and so for elif, while, and conditional expressions
    branch dropped          if a: becomes if False:, where there is no else
    operator exchanged      a and b becomes a or b, min becomes max, + becomes -
    call removed            a statement that only calls something is left out
    order swapped           a statement that only calls something changes places with its neighbour

A mutant is an edit of the text, so everything else stays as it is, line numbers included where it can be.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from msgspec import Struct

MUTATED = ("core", "agent/pool", "agent/networks", "controller")
"""What is mutated, below `src/podtide`: what decides on addresses."""

_FLIPPED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_EXCHANGED = {"min": "max", "max": "min", "any": "all", "all": "any"}
_ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+"}
_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign)


class GeneratedMutant(Struct, frozen=True, kw_only=True):
    """One edit of one file."""

    file: str
    """Below `src/podtide`."""
    line: int
    kind: str
    begin: int
    """Where in the text the old part begins, and where it ends."""
    end: int
    old: str
    new: str
    place: str
    """Where that is, in words that stay while other lines change."""

    @property
    def name(self) -> str:
        """What tells it from others, also when other lines of the file have changed."""
        return f"{self.file} {self.kind}: {self.place}"


def mutants_of(file: str, source: str) -> list[GeneratedMutant]:
    """All mutants of a file, in the order of the text."""
    lines = source.splitlines()
    alike = Counter[tuple[str, str]]()
    made: list[GeneratedMutant] = []
    for begin, end, kind, new in sorted(_Edits(source).all()):
        line = source.count("\n", 0, begin)
        column = begin - source.rfind("\n", 0, begin) - 1
        text = f"{lines[line].strip()!r} from {column - len(lines[line]) + len(lines[line].lstrip())} for {len(new)}"
        alike[kind, text] += 1
        made.append(
            GeneratedMutant(
                file=file,
                line=line + 1,
                kind=kind,
                begin=begin,
                end=end,
                old=source[begin:end],
                new=new,
                place=f"{text}, number {alike[kind, text]}",
            )
        )
    return made


def apply(mutant: GeneratedMutant, source: str) -> str:
    """The source with the edit."""
    assert source[mutant.begin : mutant.end] == mutant.old, f"{mutant.file} has changed since"
    return source[: mutant.begin] + mutant.new + source[mutant.end :]


def sample(package: Path, size: int, seed: int) -> list[GeneratedMutant]:
    """So many mutants of the package, drawn evenly over all there are. Most stay the same while the code changes."""
    files = sorted(path for part in MUTATED for path in (package / part).rglob("*.py"))
    every = [
        mutant for path in files for mutant in mutants_of(str(path.relative_to(package)), path.read_text())
    ]
    return sorted(every, key=lambda mutant: sha256(f"{seed} {mutant.name}".encode()).digest())[:size]


_Edit = tuple[int, int, str, str]
"""Where the old part begins and ends, the kind of change, and what comes in its place."""


class _Edits:
    """Finds what can be edited in one source."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._bytes_before = [0]
        for text in source.encode().splitlines(keepends=True):
            self._bytes_before.append(self._bytes_before[-1] + len(text))

    def all(self) -> Iterator[_Edit]:
        tree = ast.parse(self._source)
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare):
                yield from self._comparison(node)
            elif isinstance(node, ast.If):
                yield from self._branch(node)
            elif isinstance(node, ast.While | ast.IfExp):
                yield self._inverted(node.test)
            elif isinstance(node, ast.BoolOp):
                yield from self._connective(node)
            elif isinstance(node, ast.BinOp):
                yield from self._arithmetic(node)
            elif (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _EXCHANGED
            ):
                begin, end = self._span(node.func)
                yield begin, end, "operator exchanged", _EXCHANGED[node.func.id]
            for block in ("body", "orelse", "finalbody"):
                statements = getattr(node, block, None)
                if isinstance(statements, list):
                    yield from self._statements(statements)

    def _comparison(self, node: ast.Compare) -> Iterator[_Edit]:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            yield self._between("comparison flipped", left, right, _FLIPPED[type(operator)])
            left = right

    def _connective(self, node: ast.BoolOp) -> Iterator[_Edit]:
        word = "or" if isinstance(node.op, ast.And) else "and"
        begin, end = self._span(node)
        parts = [self._source[slice(*self._span(value))] for value in node.values]
        # Written anew as a whole, because "and" and "or" bind differently.
        yield begin, end, "operator exchanged", f"({f' {word} '.join(f'({part})' for part in parts)})"

    def _arithmetic(self, node: ast.BinOp) -> Iterator[_Edit]:
        if type(node.op) in _ARITHMETIC and not _is_text(node):
            yield self._between("operator exchanged", node.left, node.right, _ARITHMETIC[type(node.op)])

    def _branch(self, node: ast.If) -> Iterator[_Edit]:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        yield self._inverted(node.test)
        if not node.orelse:
            begin, end = self._span(node.test)
            yield begin, end, "branch dropped", "False"

    def _inverted(self, test: ast.expr) -> _Edit:
        begin, end = self._span(test)
        return begin, end, "condition inverted", f"not ({self._source[begin:end]})"

    def _statements(self, block: Sequence[ast.stmt]) -> Iterator[_Edit]:
        for statement in block:
            if isinstance(statement, ast.Expr) and _is_call(statement.value):
                yield *self._span(statement), "call removed", "pass"
        for first, second in pairwise(block):
            if isinstance(first, _SIMPLE) and isinstance(second, _SIMPLE) and not _is_docstring(first):
                if not any(isinstance(each, ast.Expr) and _is_call(each.value) for each in (first, second)):
                    continue
                if _is_docstring(second) or _is_declaration(first) or _is_declaration(second):
                    continue
                (begin, middle), (then, end) = self._span(first), self._span(second)
                text = self._source
                yield begin, end, "order swapped", text[then:end] + text[middle:then] + text[begin:middle]

    def _between(self, kind: str, left: ast.expr, right: ast.expr, word: str) -> _Edit:
        """An edit of what stands between two expressions, but for brackets and breaks of lines there."""
        begin, end = self._span(left)[1], self._span(right)[0]
        text = self._source[begin:end]
        before = text[: len(text) - len(text.lstrip(" \t\n)"))]
        after = text[len(text.rstrip(" \t\n(")) :]
        return begin, end, kind, f"{before or ' '}{word}{after or ' '}"

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _at(self, line: int, column: int) -> int:
        """A place in the text; Python's parser counts bytes."""
        before = self._source.encode()[: self._bytes_before[line - 1] + column]
        return len(before.decode())


def _is_call(value: ast.expr) -> bool:
    return isinstance(value.value if isinstance(value, ast.Await) else value, ast.Call)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_declaration(statement: ast.stmt) -> bool:
    """A field of a class, or an assignment that means the same wherever it stands."""
    return isinstance(statement, ast.AnnAssign) and not isinstance(statement.target, ast.Attribute)


def _is_text(node: ast.BinOp) -> bool:
    """Whether something is put together that is no number: then the mutant only breaks a message."""
    return any(
        isinstance(side, ast.JoinedStr | ast.Tuple | ast.List)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )
