"""The pages' Mermaid diagrams as pictures: `make diagrams`.

Pages keep the diagrams' source, which is readable as it is and which GitHub draws. The documentation's site must need no
network, and Mermaid is three megabytes of JavaScript: so the site shows pictures, drawn here, once, and kept in
docs/images/diagrams under a name that follows from the source. A diagram that changed has no picture until this is run,
and the site does not build. Mermaid itself is fetched once, into the user's cache, and checked by its hash.
"""

import base64
import hashlib
import io
import os
import re
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from browser import NoBrowser, chromium

ROOT = Path(__file__).resolve().parent.parent
PICTURES = "docs/images/diagrams"
DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
_PAGES = ("*.md", "docs/**/*.md", "plugin/*.md", "deploy/**/*.md")
_VERSION = "11.17.2"
_INTEGRITY = "V6K3C8EBdEsPFZXSKMJe6ppQOENxuHARr9GvHX4hh47lAbhMRD9qf4oEK7LoaRQxULMa80/qt5gHO73aCleBBg=="
"""SHA-512 of the archive, as the registry states it."""
_SCRIPT = "package/dist/mermaid.min.js"
_DRAW = """async ([source, name]) => {
    mermaid.initialize({
        startOnLoad: false, theme: 'neutral', htmlLabels: false, flowchart: {htmlLabels: false},
        fontFamily: 'Arial, Helvetica, sans-serif', deterministicIds: true, deterministicIDSeed: name,
    });
    return (await mermaid.render('d' + name, source)).svg;
}"""


class CannotFetch(Exception):
    """Mermaid is not to be had, or is not what was expected."""


def picture_of(source: str) -> str:
    """Where a diagram's picture is in the repository."""
    return f"{PICTURES}/{hashlib.sha256(source.strip().encode()).hexdigest()[:12]}.svg"


def all_diagrams() -> dict[str, str]:
    """The source of every diagram of the pages, by its picture."""
    return {
        picture_of(block): block.strip()
        for pattern in _PAGES
        for path in sorted(ROOT.glob(pattern))
        for block in DIAGRAM.findall(path.read_text())
    }


def main() -> int:
    """Draw what has no picture yet, and delete pictures of which the diagram is gone."""
    wanted = all_diagrams()
    there = {f"{PICTURES}/{path.name}" for path in (ROOT / PICTURES).glob("*.svg")}
    for picture in sorted(there - set(wanted)):
        (ROOT / picture).unlink()
        print(f"diagrams: removed {picture}")
    missing = {picture: source for picture, source in wanted.items() if picture not in there}
    try:
        for picture, drawn in _draw(missing) if missing else ():
            (ROOT / picture).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / picture).write_text(drawn + "\n")
            print(f"diagrams: {picture}")
    except (NoBrowser, CannotFetch) as error:
        print(f"diagrams: {error}", file=sys.stderr)
        return 1
    return 0


def _draw(sources: dict[str, str]) -> Iterator[tuple[str, str]]:
    script = _mermaid()
    with chromium() as browser:
        page = browser.new_page()
        page.add_script_tag(path=script)
        for picture, source in sources.items():
            svg = page.evaluate(_DRAW, [source, Path(picture).stem])
            # The page behind it may be dark, and the lines are.
            yield picture, svg.replace('style="', 'style="background: white; ', 1)


def _mermaid() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "podtide"
    kept = cache / f"mermaid-{_VERSION}.min.js"
    if kept.exists():
        return kept
    with TemporaryDirectory() as directory:
        command = ["npm", "pack", f"mermaid@{_VERSION}", "--pack-destination", directory]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            words = getattr(error, "stderr", "").strip() or error
            raise CannotFetch(f"cannot fetch Mermaid by `{shlex.join(command)}`: {words}") from error
        archive = (Path(directory) / f"mermaid-{_VERSION}.tgz").read_bytes()
    if base64.b64encode(hashlib.sha512(archive).digest()).decode() != _INTEGRITY:
        raise CannotFetch(f"what npm has as mermaid@{_VERSION} is not the archive that it was")
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        script = opened.extractfile(_SCRIPT)
        assert script is not None
        cache.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(script.read())
    return kept


if __name__ == "__main__":
    sys.exit(main())
