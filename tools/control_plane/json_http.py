"""Just enough HTTP to ask the API server and etcd for what starting a control plane takes.

podtide's own client is what the tests on the control plane are about, so the control plane does without it.
"""

import http.client
import json
import ssl
from typing import Any
from urllib.parse import urlsplit

from control_plane.errors import RequestFailed

TIMEOUT_SECONDS = 30.0


class JsonHttp:
    """One server, asked over a new connection each time, so that it may be restarted in between."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        self.url = url
        self._tls = tls

    def request(self, method: str, path: str, body: object = None) -> Any:
        """The decoded answer, or RequestFailed with what the server says."""
        return json.loads(self._answer(method, path, body))

    def text(self, path: str) -> str:
        """What the server has there, as it is; or RequestFailed likewise."""
        return self._answer("GET", path)

    def is_up(self, path: str) -> bool:
        """Whether the server answers here, and answers well."""
        try:
            status, _ = self._exchange("GET", path)
        except (OSError, http.client.HTTPException):
            return False
        return status == http.HTTPStatus.OK

    def _answer(self, method: str, path: str, body: object = None) -> str:
        status, answer = self._exchange(method, path, body)
        if status >= http.HTTPStatus.BAD_REQUEST:
            raise RequestFailed(f"{method} {path} is answered with {status}: {answer.strip()}", status)
        return answer

    def _exchange(self, method: str, path: str, body: object = None) -> tuple[int, str]:
        server = urlsplit(self.url)
        assert server.hostname is not None
        connection = (
            http.client.HTTPSConnection(
                server.hostname, server.port, timeout=TIMEOUT_SECONDS, context=self._tls
            )
            if self._tls
            else http.client.HTTPConnection(server.hostname, server.port, timeout=TIMEOUT_SECONDS)
        )
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()
