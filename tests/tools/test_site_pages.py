"""The site from docs/: links work there as in the repository, and what is wrong with a page stops the build."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from mkdocs.exceptions import PluginError

from diagrams import DIAGRAM, PICTURES, all_diagrams, picture_of
from repository_files import ROOT
from site_pages import (
    linked_files,
    place_in_repository,
    place_on_site,
    relative,
    with_links,
    with_pictures,
)

PARTS = ["Tutorial", "How-to", "Reference", "Explanation"]


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("README.md", "index.md"),
        ("docs/agent.md", "agent.md"),
        ("docs/design/wire.md", "design/wire.md"),
        ("plugin/PROTOCOL.md", "repository/plugin/PROTOCOL.md"),
    ],
)
def test_every_file_has_one_place_on_the_site(path: str, place: str) -> None:
    assert place_on_site(path) == place
    assert place_in_repository(place) == path


@pytest.mark.parametrize(
    ("target", "place", "link"),
    [
        ("docs/agent.md", "index.md", "agent.md"),
        ("plugin/PROTOCOL.md", "design/decisions.md", "../repository/plugin/PROTOCOL.md"),
        ("docs/installing.md", "repository/deploy/chart/README.md", "../../../installing.md"),
        ("src", "index.md", None),
    ],
)
def test_a_link_leads_from_place_to_place(target: str, place: str, link: str | None) -> None:
    assert relative(target, place) == link


def test_a_link_keeps_its_words_and_its_anchor_and_what_is_code_is_left_alone() -> None:
    page = "[ports](ports.md#who) `[x](y.md)` [out](https://example.org/a) [below](#here) [code](../src)"
    assert with_links(page, "docs/a.md", lambda target: f"new/{target}" if "." in target else None) == (
        "[ports](new/docs/ports.md#who) `[x](y.md)` [out](https://example.org/a) [below](#here) code"
    )


def test_what_a_page_links_to_comes_along() -> None:
    assert "plugin/PROTOCOL.md" in linked_files((ROOT / "docs" / "plugin.md").read_text(), "docs/plugin.md")


def test_every_diagram_has_its_picture_and_every_picture_its_diagram() -> None:
    """If this fails, run `make diagrams`."""
    pictures = {f"{PICTURES}/{path.name}" for path in (ROOT / PICTURES).iterdir()}
    assert pictures == set(all_diagrams())


def test_a_picture_is_drawn_without_text_of_html_which_not_every_viewer_shows() -> None:
    for path in (ROOT / PICTURES).iterdir():
        drawn = path.read_text()
        assert drawn.startswith("<svg ")
        assert "<foreignObject" not in drawn
        assert not re.search(r"(?:href|src|url\()=?[\"']?https?:", drawn)


def test_a_diagram_is_shown_as_its_picture_with_the_heading_above_it() -> None:
    source = DIAGRAM.findall((ROOT / "docs" / "plugin.md").read_text())[0]
    page = f"# One\n\n## Two\n\n```mermaid\n{source}```\n"
    assert with_pictures(page, "design/rules.md") == (
        f"# One\n\n## Two\n\n![Diagram: Two](../{picture_of(source).removeprefix('docs/')})\n"
    )


def test_a_diagram_without_a_picture_stops_the_build() -> None:
    with pytest.raises(PluginError, match=r"agent\.md: a diagram has no picture: run `make diagrams`"):
        with_pictures("```mermaid\nflowchart TD\n  new\n```", "agent.md")


class Site:
    """A copy of what the site is made of, to be broken."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in ("docs", "tools", "scenarios", "deploy", "plugin", "bench", "tests/recorded"):
            shutil.copytree(
                ROOT / name, directory / name, ignore=shutil.ignore_patterns("target", "__pycache__")
            )
        for page in (*ROOT.glob("*.md"), ROOT / "mkdocs.yml", ROOT / "LICENSE"):
            shutil.copy(page, directory)

    def build(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [Path(sys.executable).with_name("mkdocs"), "build", "--strict"],
            cwd=self.directory,
            env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
            check=False,
            capture_output=True,
            text=True,
        )


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "podtide")


@pytest.mark.slow
def test_the_site_builds_and_no_page_names_a_script_a_style_or_a_picture_elsewhere(site: Site) -> None:
    answer = site.build()
    assert answer.returncode == 0, answer.stderr
    pages = list((site.directory / "build" / "site").rglob("*.html"))
    assert len(pages) > 30
    fetched = re.compile(r"<(?:script|img|link|iframe)\b[^>]*(?:src|href)=\"?(https?:)?//")
    assert [page.name for page in pages if fetched.search(page.read_text())] == []
    # For an element of this class the theme would have the reader's browser fetch Mermaid.
    assert [page.name for page in pages if re.search(r"class=\"?mermaid", page.read_text())] == []
    shown = {
        name
        for page in pages
        for name in re.findall(r'src="?[./]*images/diagrams/([0-9a-f]+\.svg)', page.read_text())
    }
    assert shown == {Path(picture).name for picture in all_diagrams()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "text", "words"),
    [
        ("ports.md", "[gone](gone.md)", "gone.md"),
        ("ports.md", "[gone](agent.md#gone)", "does not contain an anchor '#gone'"),
        ("unlisted.md", "# Unlisted", 'not included in the "nav" configuration:\n  - unlisted.md'),
    ],
)
def test_a_dead_link_or_a_page_that_the_navigation_lacks_stops_the_build(
    site: Site, page: str, text: str, words: str
) -> None:
    with (site.directory / "docs" / page).open("a") as file:
        file.write(f"\n{text}\n")
    answer = site.build()
    assert answer.returncode == 1
    assert words in answer.stdout + answer.stderr


def test_the_site_has_four_parts() -> None:
    class Loader(yaml.SafeLoader):
        """Reads the file without making the objects that its tags name."""

    Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)
    settings = yaml.load((ROOT / "mkdocs.yml").read_text(), Loader=Loader)  # noqa: S506 - it makes no objects
    assert [next(iter(part)) for part in settings["nav"]] == ["Home", *PARTS]
