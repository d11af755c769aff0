import pytest

from podtide.cluster.kubernetes.proxies import proxy_for

PROXY = "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("url", "environment", "proxy"),
    [
        ("https://api.example:6443", {}, None),
        ("https://api.example:6443", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://api.example:6443", {"https_proxy": PROXY}, PROXY),
        ("https://api.example:6443", {"HTTPS_PROXY": "proxy.example:3128"}, PROXY),
        ("https://api.example:6443", {"HTTP_PROXY": PROXY}, None),
        ("http://api.example:8080", {"HTTP_PROXY": PROXY}, PROXY),
        ("http://api.example:8080", {"HTTPS_PROXY": PROXY}, None),
        ("https://localhost:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": PROXY}, None),
    ],
)
def test_the_environment_names_the_proxy_by_the_servers_scheme(
    url: str, environment: dict[str, str], proxy: str | None
) -> None:
    assert proxy_for(url, environment) == proxy


@pytest.mark.parametrize(
    ("exceptions", "url", "straight"),
    [
        ("*", "https://api.example", True),
        ("", "https://api.example", False),
        ("api.example", "https://api.example:6443", True),
        ("API.example", "https://api.example:6443", True),
        ("example", "https://api.example", True),
        (".example", "https://api.example", True),
        ("*.example", "https://api.example", True),
        (".example", "https://example", False),
        ("ample", "https://api.example", False),
        ("api.example:6443", "https://api.example:6443", True),
        ("api.example:443", "https://api.example", True),
        ("api.example:1", "https://api.example:6443", False),
        ("api.example:x", "https://api.example:6443", False),
        ("10.0.0.0/8", "https://10.1.2.3:6443", True),
        ("10.0.0.0/8", "https://11.1.2.3:6443", False),
        ("10.0.0.0/8", "https://api.example", False),
        ("10.1.2.3", "https://10.1.2.3", True),
        ("10.1.2.3:443", "https://10.1.2.3", True),
        ("10.1.2.3:80", "https://10.1.2.3", False),
        ("fd00::/8", "https://[fd00::1]:6443", True),
        ("[fd00::1]:6443", "https://[fd00::1]:6443", True),
        ("other, .svc ,10.0.0.0/8", "https://10.1.2.3", True),
    ],
)
def test_exceptions_are_names_addresses_and_networks(exceptions: str, url: str, straight: bool) -> None:
    for variable in ("NO_PROXY", "no_proxy"):
        proxy = proxy_for(url, {"HTTPS_PROXY": PROXY, variable: exceptions})
        assert proxy == (None if straight else PROXY)
