"""What can go wrong with the control plane, by what the reader can do about it."""

from podtide.core.errors import FixError, RetryError


class CannotBuild(FixError):
    """A binary is not there and cannot be made here: something must be installed first."""


class DidNotStart(RetryError):
    """A program ended or was not ready in time; the end of its log is in the message."""


class RequestFailed(FixError):
    """The API server or etcd refused what was asked."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
