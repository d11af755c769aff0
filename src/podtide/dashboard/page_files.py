"""The files of the page, read and compressed once: they are part of the package, and a few hundred kilobytes.

There is no build step, so the page is forty modules that import each other. A browser learns of an import only when it has the module
that has it; the page itself names them all, and they are fetched side by side.
"""

import gzip
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

_DIRECTORY = Path(__file__).parent / "static"
_INDEX = "index.html"
_HEAD_END = b"  </head>"
_MODULE = ".js"
_LEAST_COMPRESSED = 1_024
"""Bytes: what is smaller fits in a packet anyway."""
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
    gzipped: bytes | None
    """None where compression saves nothing."""
    content_type: str
    etag: str


def read_page_files(directory: Path = _DIRECTORY) -> dict[str, PageFile]:
    """All files by their path below /static/; the page itself is under ""."""
    bodies = {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
    if _INDEX in bodies:
        bodies[""] = bodies[_INDEX] = _with_modules(bodies[_INDEX], bodies)
    return {path: _page_file(path or _INDEX, body) for path, body in bodies.items()}


def _with_modules(page: bytes, paths: Iterable[str]) -> bytes:
    links = "".join(
        f'    <link rel="modulepreload" href="static/{path}" />\n' for path in paths if path.endswith(_MODULE)
    )
    return page.replace(_HEAD_END, links.encode() + _HEAD_END)


def _page_file(path: str, body: bytes) -> PageFile:
    packed = gzip.compress(body, mtime=0) if len(body) >= _LEAST_COMPRESSED else body
    return PageFile(
        body=body,
        gzipped=packed if len(packed) < len(body) else None,
        content_type=_TYPES.get(Path(path).suffix, _OTHER),
        etag=f'"{sha256(body).hexdigest()[:32]}"',
    )
