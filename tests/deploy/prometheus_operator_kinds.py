"""The Prometheus operator's kinds, as far as its public documentation says what an API server holds them to.

The operator is not here, only its kinds: what the chart states in them must be fields that there are, of the right types.
"""

from typing import Any

from control_plane.cluster import ControlPlane
from control_plane.installation import DEFINITIONS
from deploy.installed import wait_until

GROUP = "monitoring.coreos.com"

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_LABELS = {"type": "object", "additionalProperties": _TEXT}


def _object(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": [*required]} if required else {})}


_DURATION = {"type": "string", "pattern": "^(0|([0-9]+(ms|[smhdwy]))+)$"}
_REQUIREMENT = _object("key", "operator", key=_TEXT, operator=_TEXT, values=_TEXTS)
_SELECTOR = _object(matchLabels=_LABELS, matchExpressions={"type": "array", "items": _REQUIREMENT})
_RELABELING = _object(
    sourceLabels=_TEXTS, targetLabel=_TEXT, regex=_TEXT, replacement=_TEXT, action=_TEXT, separator=_TEXT
)
_ENDPOINT = _object(
    port=_TEXT,
    path=_TEXT,
    scheme={"type": "string", "enum": ["http", "https", "HTTP", "HTTPS"]},
    interval=_DURATION,
    scrapeTimeout=_DURATION,
    honorLabels={"type": "boolean"},
    relabelings={"type": "array", "items": _RELABELING},
    tlsConfig=_object(caFile=_TEXT, serverName=_TEXT, insecureSkipVerify={"type": "boolean"}),
)
_MONITOR = _object(
    *("endpoints", "selector"),
    jobLabel=_TEXT,
    targetLabels=_TEXTS,
    podTargetLabels=_TEXTS,
    selector=_SELECTOR,
    namespaceSelector=_object(any={"type": "boolean"}, matchNames=_TEXTS),
    endpoints={"type": "array", "items": _ENDPOINT},
)
_RULE = _object(
    "expr",
    alert=_TEXT,
    record=_TEXT,
    expr={"anyOf": [{"type": "integer"}, _TEXT], "x-kubernetes-int-or-string": True},
    **{"for": _DURATION, "keep_firing_for": _DURATION},
    labels=_LABELS,
    annotations=_LABELS,
)
_GROUP = _object("name", name=_TEXT, interval=_DURATION, rules={"type": "array", "items": _RULE})
_RULES = _object(groups={"type": "array", "items": _GROUP})


def _definition(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    singular = kind.lower()
    return {
        "metadata": {"name": f"{singular}s.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": f"{singular}s", "singular": singular, "kind": kind},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": _object("spec", spec=spec)},
                }
            ],
        },
    }


_DEFINITIONS = (_definition("ServiceMonitor", _MONITOR), _definition("PrometheusRule", _RULES))


def define_prometheus_operator_kinds(control_plane: ControlPlane) -> None:
    """Let a cluster know the kinds."""
    for each in _DEFINITIONS:
        control_plane.admin.request("POST", DEFINITIONS, each)
    names = ",".join(each["metadata"]["name"] for each in _DEFINITIONS)
    wait_until(lambda: control_plane.kubectl("get", names, "--all-namespaces").returncode == 0)
