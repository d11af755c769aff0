"""What the executables are made of: a plugin starts for every pod, so it must be there in a moment, on any node."""

import ast
import shutil
import subprocess
from pathlib import Path

import pytest

from plugin.executables import BINARY, ROOT, SCRIPT
from podtide.core.errors import InvalidConfig
from podtide.runtime.plugin_executable import find_plugin


def test_the_script_imports_only_what_is_compiled_into_python() -> None:
    tree = ast.parse(SCRIPT.read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert {node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in imports} == {
        "_socket",
        "posix",
        "time",
    }


def test_the_script_is_started_by_the_systems_python_without_its_surroundings() -> None:
    assert SCRIPT.read_text().startswith("#!/usr/bin/python3 -IS\n")


def test_the_script_keeps_to_the_grammar_of_old_pythons() -> None:
    ast.parse(SCRIPT.read_text(), feature_version=(3, 6))


def test_the_plugin_in_rust_needs_no_library_of_the_node(rust_executable: Path) -> None:
    listing = subprocess.run(["/usr/bin/ldd", rust_executable], check=False, capture_output=True, text=True)
    assert "statically linked" in listing.stdout or "not a dynamic executable" in listing.stderr


def test_the_plugin_in_rust_brings_no_c_library_whose_start_takes_longer_than_its_own(
    rust_executable: Path,
) -> None:
    assert rust_executable.stat().st_size < 100_000  # the smallest program with Debian's C library has 700 kB


@pytest.mark.slow
def test_the_parts_of_the_plugin_in_rust_hold(rust_executable: Path) -> None:
    del rust_executable  # asked for because this needs cargo too
    cargo = shutil.which("cargo")
    assert cargo is not None
    tested = subprocess.run(
        [cargo, "test", "--locked", "--offline", "--quiet"],
        cwd=ROOT / "plugin",
        check=False,
        capture_output=True,
        text=True,
    )
    assert tested.returncode == 0, tested.stdout


def test_the_plugin_in_rust_depends_on_nobody() -> None:
    assert (ROOT / "plugin" / "Cargo.lock").read_text().count("[[package]]") == 1


def test_in_a_checkout_the_built_plugin_is_found_and_else_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PODTIDE_PLUGIN", raising=False)
    assert find_plugin() == (BINARY if BINARY.exists() else SCRIPT)


def test_a_plugin_that_is_named_is_the_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODTIDE_PLUGIN", str(SCRIPT))
    assert find_plugin() == SCRIPT


def test_a_name_that_is_no_program_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing", ROOT / "README.md"):
        monkeypatch.setenv("PODTIDE_PLUGIN", str(path))
        with pytest.raises(InvalidConfig, match=f"PODTIDE_PLUGIN is {path}"):
            find_plugin()
