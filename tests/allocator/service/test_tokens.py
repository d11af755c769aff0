"""The tokens file: hashes, each for a cluster or for administration; read again when it changes."""

import hashlib
import io
from pathlib import Path

import pytest

from allocator.service.running import a_log
from podtide.allocator.service.tokens import Holder, InvalidTokens, Tokens


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def a_file(directory: Path, *lines: str) -> Path:
    path = directory / "tokens"
    path.write_text("\n".join(lines))
    return path


def test_a_token_stands_for_a_cluster_or_for_the_administration(tmp_path: Path) -> None:
    path = a_file(
        tmp_path,
        "# who may ask",
        "",
        f"{digest('e')}  cluster east  # until next year",
        f"{digest('w').upper()}\tcluster\twest",
        f"{digest('a')} administration",
    )
    tokens = Tokens(path, a_log())
    assert [tokens.holder(token) for token in ("e", "w", "a", "x", "")] == [
        Holder("east"),
        Holder("west"),
        Holder(),
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "has no token"),
        (["# nothing"], "has no token"),
        (["secret cluster east"], "line 1 of .* is not a valid token: write its SHA-256"),
        (["", f"{digest('e')}"], "line 2 of .* is not a valid token"),
        ([f"{digest('e')} cluster"], "line 1 of .* is not a valid token"),
        ([f"{digest('e')} cluster e ast"], "line 1 of .* is not a valid token"),
        ([f"{digest('e')} administration of east"], "line 1 of .* is not a valid token"),
        ([f"{digest('e')[:-1]} administration"], "line 1 of .* is not a valid token"),
        ([f"{digest('e')} cluster öst"], "cluster 'öst' is not a valid name"),
    ],
)
def test_a_file_that_says_something_else_is_refused_by_line(
    tmp_path: Path, lines: list[str], reason: str
) -> None:
    with pytest.raises(InvalidTokens, match=reason):
        Tokens(a_file(tmp_path, *lines), a_log())


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidTokens, match="cannot be read"):
        Tokens(tmp_path / "tokens", a_log())


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    path = a_file(tmp_path, f"{digest('old')} cluster east")
    tokens = Tokens(path, a_log())
    a_file(tmp_path, f"{digest('newer')} cluster eastern")
    assert (tokens.holder("old"), tokens.holder("newer")) == (None, Holder("eastern"))


def test_a_file_that_becomes_unreadable_leaves_the_tokens_in_force_and_says_so_once(tmp_path: Path) -> None:
    log = io.StringIO()
    path = a_file(tmp_path, f"{digest('e')} cluster east")
    tokens = Tokens(path, a_log(log))
    a_file(tmp_path, "half a li")
    assert tokens.holder("e") == tokens.holder("e") == Holder("east")
    assert log.getvalue().count("the previous ones stay in force") == 1
    path.unlink()
    assert tokens.holder("e") == tokens.holder("e") == Holder("east")
    assert log.getvalue().count("the previous ones stay in force") == 2
    a_file(tmp_path, f"{digest('e2')} cluster east")
    assert (tokens.holder("e"), tokens.holder("e2")) == (None, Holder("east"))


def test_a_holder_is_called_by_what_it_may_do() -> None:
    assert (str(Holder("east")), str(Holder())) == ("cluster east", "administration")
