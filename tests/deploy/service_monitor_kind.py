"""The Prometheus operator's ServiceMonitor, as far as its public documentation says what an API server holds it to.

The operator is not here, only its kind: what the chart states in it must be fields that there are, of the right types.
"""

from typing import Any

from control_plane.cluster import ControlPlane
from control_plane.installation import DEFINITIONS
from deploy.installed import wait_until

NAME = "servicemonitors.monitoring.coreos.com"

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_LABELS = {"type": "object", "additionalProperties": _TEXT}


def _object(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": [*required]} if required else {})}


_DURATION = {"type": "string", "pattern": "^(0|([0-9]+(ms|[smhdwy]))+)$"}
_REQUIREMENT = _object("key", "operator", key=_TEXT, operator=_TEXT, values=_TEXTS)
_SELECTOR = _object(matchLabels=_LABELS, matchExpressions={"type": "array", "items": _REQUIREMENT})
_ENDPOINT = _object(
    port=_TEXT,
    path=_TEXT,
    scheme={"type": "string", "enum": ["http", "https", "HTTP", "HTTPS"]},
    interval=_DURATION,
    scrapeTimeout=_DURATION,
    honorLabels={"type": "boolean"},
    tlsConfig=_object(caFile=_TEXT, serverName=_TEXT, insecureSkipVerify={"type": "boolean"}),
)
_SPEC = _object(
    *("endpoints", "selector"),
    jobLabel=_TEXT,
    targetLabels=_TEXTS,
    podTargetLabels=_TEXTS,
    selector=_SELECTOR,
    namespaceSelector=_object(any={"type": "boolean"}, matchNames=_TEXTS),
    endpoints={"type": "array", "items": _ENDPOINT},
)
_DEFINITION = {
    "metadata": {"name": NAME},
    "spec": {
        "group": "monitoring.coreos.com",
        "scope": "Namespaced",
        "names": {"plural": "servicemonitors", "singular": "servicemonitor", "kind": "ServiceMonitor"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": _object("spec", spec=_SPEC)},
            }
        ],
    },
}


def define_service_monitors(control_plane: ControlPlane) -> None:
    """Let a cluster know the kind."""
    control_plane.admin.request("POST", DEFINITIONS, _DEFINITION)
    wait_until(lambda: control_plane.kubectl("get", NAME, "--all-namespaces").returncode == 0)
