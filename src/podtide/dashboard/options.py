"""What a page shows, and where. Apart from the rest of the package, which only a program with a page has to load."""

from msgspec import Struct

from podtide.core.subnet.exhaustion import Thresholds
from podtide.runtime.listening import ListenAddress

OPEN_BECAUSE = "the page shows all nodes and pods to every caller: give a loopback address, such as 127.0.0.1:8321, or a token"
"""What is said of an address that others can reach, where no token is given."""


class PageOptions(Struct, frozen=True, kw_only=True):
    """What a page shows, and where."""

    listen: ListenAddress
    token: str = ""
    name: str
    """The cluster's name, for people."""
    networks_namespace: str
    thresholds: Thresholds | None = None
    """Those of the controller's settings: for clusters without ClusterSubnets, which show what is in force."""
    demo: bool = False
