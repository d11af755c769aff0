"""What the page sends, compressed where the browser takes it: a snapshot of 5,000 nodes is a megabyte, and `kubectl port-forward` is slow.

Every event of the stream is flushed as it is written: a browser must not wait for the next one to read it. The fastest level, since
records repeat themselves, and a level that saves a tenth more takes four times as long.
"""

import zlib

from aiohttp import hdrs, web

GZIP = "gzip"
_LEVEL = 1
_LEAST_BYTES = 1_024
_WINDOW = 16 + zlib.MAX_WBITS
"""16 stands for the gzip format."""


def takes_gzip(request: web.Request) -> bool:
    """Whether the browser says that it reads gzip. "gzip;q=0" says that it does not."""
    for offer in request.headers.get(hdrs.ACCEPT_ENCODING, "").lower().split(","):
        coding, _, quality = offer.partition(";")
        if coding.strip() == GZIP:
            return quality.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return False


def compress(request: web.Request, response: web.Response) -> None:
    """Compress an answer, if that is worth it."""
    body = response.body
    if isinstance(body, bytes) and len(body) >= _LEAST_BYTES and takes_gzip(request):
        packing = zlib.compressobj(_LEVEL, wbits=_WINDOW)
        response.body = packing.compress(body) + packing.flush()
        _say_so(response)


class StreamCompression:
    """Compresses an answer that goes on for hours."""

    def __init__(self, request: web.Request, response: web.StreamResponse) -> None:
        self._packing = zlib.compressobj(_LEVEL, wbits=_WINDOW) if takes_gzip(request) else None
        if self._packing is not None:
            _say_so(response)

    def whole(self, data: bytes) -> bytes:
        """The next piece, so that all of it can be read at once."""
        if self._packing is None:
            return data
        return self._packing.compress(data) + self._packing.flush(zlib.Z_SYNC_FLUSH)


def _say_so(response: web.StreamResponse) -> None:
    response.headers[hdrs.CONTENT_ENCODING] = GZIP
    response.headers[hdrs.VARY] = hdrs.ACCEPT_ENCODING
