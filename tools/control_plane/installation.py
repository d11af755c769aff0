"""podtide's CRDs on a new API server, and when its kinds are really served."""

import time

from control_plane.errors import DidNotStart
from control_plane.json_http import JsonHttp
from podtide.resources.base import Api
from podtide.resources.crds import crds
from podtide.resources.kinds import ALL_KINDS

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SERVED_SECONDS = 60.0
POLL_SECONDS = 0.05


def install_crds(admin: JsonHttp) -> None:
    """Install podtide's CRDs, and Multus's one."""
    for document in crds(with_network_attachments=True):
        admin.request("POST", DEFINITIONS, document)


def wait_until_served(admin: JsonHttp) -> None:
    """Wait until every kind podtide knows can be listed.

    That is later than a CRD is established, and later than a restarted API server is ready: it begins to fill its cache
    of a custom resource when that is first asked for, and answers 429 meanwhile.
    """
    deadline = time.monotonic() + SERVED_SECONDS
    waiting = [_list_path(kind.api) for kind in ALL_KINDS]
    while waiting := [path for path in waiting if not admin.is_up(path)]:
        if time.monotonic() > deadline:
            raise DidNotStart(
                f"after {SERVED_SECONDS:.0f} s the API server does not serve {', '.join(waiting)}"
            )
        time.sleep(POLL_SECONDS)


def _list_path(api: Api) -> str:
    return f"{'/apis' if api.group else '/api'}/{api.api_version}/{api.plural}?limit=1"
