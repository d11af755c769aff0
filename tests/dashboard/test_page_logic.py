"""The parts of the page that need no browser, tested by node's own runner where node is installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

TESTS = Path(__file__).parent / "page"
STATIC = Path(__file__).parents[2] / "src/podtide/dashboard/static"
NODE = shutil.which("node")
LONGEST = 300  # lines of a module


@pytest.mark.skipif(NODE is None, reason="node is not installed; the browser tests cover the page as a whole")
def test_the_pages_logic_holds() -> None:
    assert NODE is not None
    files = sorted(str(path) for path in TESTS.glob("*.test.mjs"))
    assert files
    run = subprocess.run([NODE, "--test", *files], capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def own_files(*suffixes: str) -> list[Path]:
    return [path for path in STATIC.rglob("*") if path.suffix in suffixes and "vendor" not in path.parts]


def test_modules_of_the_page_are_short_and_say_what_they_are_for() -> None:
    for path in own_files(".js"):
        lines = path.read_text().splitlines()
        assert len(lines) < LONGEST, path.name
        assert lines[0].startswith("// "), f"{path.name} opens with its reason"


def test_the_page_names_no_other_place_and_has_no_inline_script_or_style() -> None:
    page = (STATIC / "index.html").read_text()
    assert "<style" not in page
    assert "style=" not in page
    assert "onclick" not in page.lower()
    for path in own_files(".js", ".css", ".html"):
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text, path.name
        assert "https://" not in text, path.name


def test_every_vendored_file_stands_in_the_readme_with_its_licence() -> None:
    readme = (STATIC / "vendor/README.md").read_text()
    for path in (STATIC / "vendor").iterdir():
        if path.name != "README.md":
            assert f"`{path.name}`" in readme, path.name
