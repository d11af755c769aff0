"""Error messages for requests without an answer: what is wrong on the way to the server, and what to do about it.

The texts of the libraries below are not shown: they are long, and some name a proxy with its password.
"""

import ssl

from podtide.runtime.http_client import BrokenAnswer, ProxyRefused, ProxyUnreachable, Unreachable


def describe_failure(error: OSError, server: str, found_in: str) -> str:
    """The reason why a request failed, in one line."""
    match error:
        case ssl.SSLCertVerificationError():
            what = f"{server} shows a certificate we do not trust ({error.verify_message}): correct the authority in {found_in}"
        case ssl.SSLError():
            what = f"the TLS handshake with {server} failed ({_tls_reason(error)}): check that it speaks https and accepts our certificate"
        case ProxyUnreachable():
            what = f"the proxy to {server} cannot be reached ({_system_reason(error)}): check the proxy"
        case ProxyRefused():
            what = f"the proxy to {server} refused the connection with status {error.status}: check the proxy"
        case TimeoutError():
            what = f"{server} did not answer in time: see that it is up and can be reached"
        case Unreachable():
            what = f"{server} cannot be reached ({_system_reason(error)}): see that it is up"
        case BrokenAnswer():
            what = f"the connection to {server} broke in the midst of its answer"
        case _:
            what = f"the connection to {server} broke ({_system_reason(error)})"
    return what


def _tls_reason(error: ssl.SSLError) -> str:
    return (error.reason or type(error).__name__).lower().replace("_", " ")


def _system_reason(error: OSError) -> str:
    inner = error.__cause__ if isinstance(error, Unreachable) else error
    reason = inner.strerror if isinstance(inner, OSError) else None
    return reason or type(inner).__name__
