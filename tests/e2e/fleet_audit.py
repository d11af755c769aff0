"""The API server's own record of who asked for what: its audit log."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, field

POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["ResponseStarted"],
    "rules": [{"level": "Metadata", "userGroups": ["system:serviceaccounts"]}],
}
AGENT = "system:serviceaccount:kube-system:podtide-agent"
CONTROLLER = "system:serviceaccount:kube-system:podtide-controller"


_RECEIVED, _ANSWERED = "RequestReceived", "ResponseComplete"
"""An answer is complete when it has been sent; that of a watch, when the watch ends."""


class _User(Struct, frozen=True):
    username: str


class _Object(Struct, frozen=True, rename="camel"):
    resource: str = ""
    subresource: str = ""


class Request(Struct, frozen=True, rename="camel"):
    """One request, as it was received or answered."""

    audit_id: str = field(name="auditID")
    """The same at both stages."""
    stage: str
    user: _User
    verb: str
    request_uri: str = field(name="requestURI")
    object_ref: _Object = _Object()

    def __str__(self) -> str:
        return "/".join(
            filter(None, (f"{self.verb} {self.object_ref.resource}", self.object_ref.subresource))
        )


class AuditLog:
    """The log of one API server. `options` are what makes it keep one."""

    def __init__(self, directory: Path) -> None:
        policy = directory / "audit-policy.json"
        policy.write_bytes(msgspec.json.encode(POLICY))
        self._file = directory / "audit.log"
        self.options: Sequence[str] = (
            f"--audit-policy-file={policy}",
            f"--audit-log-path={self._file}",
            "--audit-log-mode=blocking-strict",  # so that what was answered is in it
        )

    @property
    def now(self) -> int:
        """A point in the log, to read from."""
        return self._file.read_bytes().rfind(b"\n") + 1

    def since(self, point: int, user: str) -> list[Request]:
        """What the user was answered since then."""
        return [each for each in self._read(point) if each.stage == _ANSWERED and each.user.username == user]

    def under_way(self) -> list[Request]:
        """What programs have asked for and were not answered yet, but for watches."""
        everything = self._read(0)
        answered = {each.audit_id for each in everything if each.stage == _ANSWERED}
        return [
            each
            for each in everything
            if each.stage == _RECEIVED and each.verb != "watch" and each.audit_id not in answered
        ]

    def _read(self, point: int) -> list[Request]:
        lines = self._file.read_bytes()[point:].splitlines(keepends=True)
        whole = [line for line in lines if line.endswith(b"\n")]  # the last one may be being written
        return [msgspec.json.decode(line, type=Request) for line in whole]


def counted(requests: Sequence[Request]) -> Counter[str]:
    """How often each thing was asked for: `{"patch nodenetworkconfigs": 1}`.

    Watches end and begin anew by the clock, and a leader renews its Lease by it: neither has to do with what happens.
    """
    return Counter(
        str(request) for request in requests if request.verb != "watch" and "leases" not in str(request)
    )
