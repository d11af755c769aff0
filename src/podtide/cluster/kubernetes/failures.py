"""Error messages for requests without an answer: what is wrong on the way to the server, and what to do about it.

The texts of the libraries below are not shown: they are long, and some name a proxy with its password.
"""

import ssl

import aiohttp


def describe_failure(error: Exception, server: str, found_in: str) -> str:
    """The reason why a request failed, in one line."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            reason = _certificate_reason(error.certificate_error)
            what = f"{server} shows a certificate we do not trust ({reason}): correct the authority in {found_in}"
        case aiohttp.ClientConnectorSSLError() | ssl.SSLError():
            what = f"the TLS handshake with {server} failed ({_tls_reason(error)}): check that it speaks https and accepts our certificate"
        case aiohttp.ClientProxyConnectionError():
            what = f"the proxy to {server} cannot be reached ({_system_reason(error)}): check the proxy"
        case aiohttp.ClientHttpProxyError():
            what = f"the proxy to {server} refused the connection with status {error.status}: check the proxy"
        case TimeoutError():
            what = f"{server} did not answer in time: see that it is up and can be reached"
        case aiohttp.ClientConnectorError():
            what = f"{server} cannot be reached ({_system_reason(error)}): see that it is up"
        case aiohttp.ClientPayloadError():
            what = f"the connection to {server} broke in the midst of its answer"
        case _:
            what = f"the connection to {server} broke ({_system_reason(error)})"
    return what


def _certificate_reason(error: Exception) -> str:
    return error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else type(error).__name__


def _tls_reason(error: Exception) -> str:
    inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    reason = inner.reason if isinstance(inner, ssl.SSLError) else None
    return (reason or type(inner).__name__).lower().replace("_", " ")


def _system_reason(error: Exception) -> str:
    inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    reason = inner.strerror if isinstance(inner, OSError) else None
    return reason or type(inner).__name__
