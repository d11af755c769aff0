"""The files of the page, read once: they are part of the package, and a few hundred kilobytes."""

from hashlib import sha256
from pathlib import Path

from msgspec import Struct

_DIRECTORY = Path(__file__).parent / "static"
_INDEX = "index.html"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".json": "application/json",
    ".woff2": "font/woff2",
}
_OTHER = "text/plain; charset=utf-8"


class PageFile(Struct, frozen=True):
    """One file."""

    body: bytes
    content_type: str
    etag: str


def read_page_files(directory: Path = _DIRECTORY) -> dict[str, PageFile]:
    """All files by their path below /static/; the page itself is under ""."""
    found = {}
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            body = path.read_bytes()
            found[path.relative_to(directory).as_posix()] = PageFile(
                body, _TYPES.get(path.suffix, _OTHER), f'"{sha256(body).hexdigest()[:32]}"'
            )
    if _INDEX in found:
        found[""] = found[_INDEX]
    return found
