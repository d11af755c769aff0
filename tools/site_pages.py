"""Hooks of the site: what pages link to outside docs/ comes along, so that every link works there as in the repository.

The repository's README is the home page; other files stand under `repository/`, pages as pages and the rest as they are.
Links are followed from page to page, so that no page has to be listed here. A link to a directory
becomes words, as a site has none. Diagrams are shown as the pictures that `make diagrams` drew: a reader's browser
fetches nothing.
"""

import os
import posixpath
import re
from collections.abc import Callable
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from diagrams import DIAGRAM, picture_of

ROOT = Path(__file__).parent.parent
HOME = "README.md"
_DOCS = "docs/"
_ELSEWHERE = "repository/"
_LINK = re.compile(r"(```.*?```|`[^`\n]*`)|(!?)\[([^\]]*)\]\(([^)\s#]*)(#[^)\s]*)?\)", flags=re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the home page, and all that is linked to from there and from the pages of docs/."""
    waiting = [HOME, *(_DOCS + file.src_uri for file in files.documentation_pages())]
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        if not path.startswith(_DOCS):
            files.append(File.generated(config, place_on_site(path), content=(ROOT / path).read_bytes()))
        if path.endswith(".md"):
            new = linked_files((ROOT / path).read_text(), path) - seen
            seen |= new
            waiting += new
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let every link lead to where its target is on the site, and show each diagram as its picture."""
    del config, files
    place = page.file.src_uri
    linked = with_links(markdown, place_in_repository(place), lambda target: relative(target, place))
    return with_pictures(linked, place)


def with_pictures(text: str, place: str) -> str:
    """The page with each diagram's picture in place of its source."""

    def shown(diagram: re.Match[str]) -> str:
        picture = picture_of(diagram[1])
        if not (ROOT / picture).is_file():
            raise PluginError(f"{place}: a diagram has no picture: run `make diagrams`")
        headings = re.findall(r"^#+ (.+)$", text[: diagram.start()], flags=re.MULTILINE)
        return f"![Diagram: {headings[-1] if headings else place}]({relative(picture, place)})"

    return DIAGRAM.sub(shown, text)


def place_on_site(path: str) -> str:
    """Where a file of the repository is on the site, relative to the site's pages."""
    if path == HOME:
        return "index.md"
    return path.removeprefix(_DOCS) if path.startswith(_DOCS) else _ELSEWHERE + path


def place_in_repository(place: str) -> str:
    """The file of the repository that is there on the site."""
    if place == "index.md":
        return HOME
    return place.removeprefix(_ELSEWHERE) if place.startswith(_ELSEWHERE) else _DOCS + place


def linked_files(text: str, path: str) -> set[str]:
    """The files of the repository that a page links to."""
    found: set[str] = set()

    def remember(target: str) -> str:
        found.add(target)
        return target

    with_links(text, path, remember)
    return {each for each in found if (ROOT / each).is_file()}


def relative(target: str, place: str) -> str | None:
    """The link from a page of the site to a file of the repository, or None for a directory. A dead link stays dead."""
    if (ROOT / target).is_dir():
        return None
    return posixpath.relpath(place_on_site(target), posixpath.dirname(place) or ".")


def with_links(text: str, path: str, change: Callable[[str], str | None]) -> str:
    """The page with each target in the repository changed; where that gives None, the link's words alone."""

    def changed(link: re.Match[str]) -> str:
        code, picture, words, target, anchor = link.groups(default="")
        if code or not target or "://" in target or target.startswith("mailto:"):
            return link[0]
        there = os.path.normpath(posixpath.join(posixpath.dirname(path), target))
        new = change(there)
        return words if new is None else f"{picture}[{words}]({new}{anchor})"

    return _LINK.sub(changed, text)
