"""What the runtime is told when something went wrong: `{cniVersion, code, msg, details}`, and which code for which error.

The runtime acts on the code alone: it tries again on 11, marks the node unready on 50 and 51, and gives a pod up
on the rest. So the choice is made in one place, by the kind of the exception, and the code that raises it need not know
CNI.
"""

from enum import IntEnum

import msgspec

from podtide.core.errors import FixError, InvalidConfig, InvalidInput, RetryError, StopError


class ErrorCode(IntEnum):
    """CNI's reserved codes (below 100), and podtide's own."""

    INCOMPATIBLE_VERSION = 1
    UNSUPPORTED_FIELD = 2
    UNKNOWN_CONTAINER = 3
    INVALID_ENVIRONMENT = 4
    IO_FAILURE = 5
    UNDECODABLE = 6
    INVALID_CONFIG = 7
    TRY_AGAIN_LATER = 11
    NOT_AVAILABLE = 50
    LIMITED = 51
    REFUSED = 100
    BROKEN_INVARIANT = 101
    UNEXPECTED = 102

    @property
    def meaning(self) -> str:
        """The code in words, for the reader of a runtime's log."""
        return _MEANINGS[self]


_MEANINGS = {
    ErrorCode.INCOMPATIBLE_VERSION: "this CNI version, or this verb in it, is not supported",
    ErrorCode.UNSUPPORTED_FIELD: "the network configuration has a field that is not supported",
    ErrorCode.UNKNOWN_CONTAINER: "the container is unknown: there is nothing to clean up",
    ErrorCode.INVALID_ENVIRONMENT: "an environment variable is missing or malformed",
    ErrorCode.IO_FAILURE: "reading or writing failed",
    ErrorCode.UNDECODABLE: "the network configuration is not JSON of the right shape",
    ErrorCode.INVALID_CONFIG: "the network configuration is invalid: it must be changed",
    ErrorCode.TRY_AGAIN_LATER: "a passing condition: the same call may succeed later",
    ErrorCode.NOT_AVAILABLE: "the plugin cannot serve ADD now",
    ErrorCode.LIMITED: "the plugin cannot serve ADD now, and running pods may have limited connectivity",
    ErrorCode.REFUSED: "what was asked cannot be done as asked: the asker must change it",
    ErrorCode.BROKEN_INVARIANT: "podtide stopped because going on could give one address to two pods",
    ErrorCode.UNEXPECTED: "an error that podtide did not foresee: please report it",
}


class IncompatibleVersion(InvalidInput):
    """A CNI version podtide does not speak, or a verb that the version does not have."""


class UnknownContainer(FixError):
    """CHECK of an attachment that was never added, or is gone."""


class InvalidEnvironment(InvalidInput):
    """A CNI_* variable that is missing or malformed."""


class Undecodable(InvalidInput):
    """Text that is not JSON, or JSON of another shape than the configuration's."""


class ForeignIpam(InvalidConfig):
    """A network whose addresses another IPAM plugin assigns."""


class NotAvailable(RetryError):
    """The node agent cannot serve ADD now: the error of STATUS."""


# The first kind that fits decides, so the special stand before the general.
_CODES: tuple[tuple[type[Exception], ErrorCode], ...] = (
    (IncompatibleVersion, ErrorCode.INCOMPATIBLE_VERSION),
    (UnknownContainer, ErrorCode.UNKNOWN_CONTAINER),
    (InvalidEnvironment, ErrorCode.INVALID_ENVIRONMENT),
    (Undecodable, ErrorCode.UNDECODABLE),
    (InvalidInput, ErrorCode.INVALID_CONFIG),
    (NotAvailable, ErrorCode.NOT_AVAILABLE),
    (RetryError, ErrorCode.TRY_AGAIN_LATER),
    (FixError, ErrorCode.REFUSED),
    (StopError, ErrorCode.BROKEN_INVARIANT),
    (OSError, ErrorCode.IO_FAILURE),
)


class ErrorAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An error as the runtime reads it: JSON on standard output, beside a non-zero exit."""

    cni_version: str
    code: int
    msg: str
    details: str


def code_for(error: BaseException) -> ErrorCode:
    """The code for an exception, by its kind."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ErrorCode.UNEXPECTED)


def error_answer(error: BaseException, cni_version: str) -> ErrorAnswer:
    """The answer for an exception, in the caller's version (the latest, where the caller's is not known)."""
    code = code_for(error)
    message = str(error) or type(error).__name__
    return ErrorAnswer(cni_version=cni_version, code=code, msg=message, details=code.meaning)
