"""Manifests as people keep them in files: several documents, Lists, and kinds that have nothing to do with pods.

A kind that is not known and has no pod template makes no pods: it is counted among those that were ignored. One with a
template makes pods by rules of its own, so it is refused instead of guessed at.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct
from msgspec.structs import replace

from podtide.cli.plan.workloads import (
    AutoscalerManifest,
    CountedWorkload,
    CronJobManifest,
    JobManifest,
    PodManifest,
    ReplicatedManifest,
    cron_job,
    job,
    pod,
    replicated,
)
from podtide.core.errors import InvalidInput
from podtide.core.exact import shortened

_LARGEST_BYTES = 16 * 1024 * 1024
_MOST_PODS = 10**9
_REPLICATED = {
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("", "ReplicationController"),
}
_AUTOSCALER = ("autoscaling", "HorizontalPodAutoscaler")


class CountedManifests(Struct, frozen=True):
    """The workloads, and how many objects of which kinds were ignored."""

    workloads: tuple[CountedWorkload, ...]
    ignored: dict[str, int]


class _Document(Struct, frozen=True):
    """One object of a file, and where it is."""

    content: dict[str, Any]
    file: str
    line: int

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}:"

    @property
    def kind(self) -> tuple[str, str]:
        """Its API group and kind."""
        group, slash, _ = self.content["apiVersion"].partition("/")
        return group if slash else "", self.content["kind"]


def read_manifests(paths: tuple[str, ...]) -> CountedManifests:
    """What the files say; `-` is stdin."""
    documents = [document for path in paths for document in _documents(path)]
    if paths and not documents:  # what should have written them failed, and nothing fits anywhere
        names = ", ".join("stdin" if path == "-" else path for path in paths)
        raise InvalidInput(
            f"{names}: there is no Kubernetes object in it: see that what writes the manifests succeeds"
        )
    workloads: list[CountedWorkload] = []
    ignored: Counter[str] = Counter()
    for document in documents:
        workload = _workload(document)
        if workload is None:
            ignored[shortened(document.kind[1])] += 1
        else:
            workloads.append(workload)
    largest = _most_replicas(documents)
    return CountedManifests(tuple(_scaled(each, largest) for each in workloads), dict(ignored))


def _documents(path: str) -> Iterator[_Document]:
    name = "stdin" if path == "-" else path
    try:
        text = sys.stdin.read() if path == "-" else _read(Path(path))
        loader = yaml.SafeLoader(text)
        while loader.check_node():
            node = loader.get_node()
            assert node is not None  # there is one, says check_node
            content = loader.construct_document(node)
            yield from _objects(content, node, name)
    except OSError as error:
        raise InvalidInput(f"cannot read {name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"cannot read {name}: it is not text in UTF-8") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise InvalidInput(f"{name}:{line}: is not valid YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise InvalidInput(f"{name} is not valid YAML: {' '.join(str(error).split())}") from None
    except InvalidInput:
        raise
    except (RecursionError, ValueError):
        raise InvalidInput(
            f"{name} is not a manifest: it is nested too deeply or has an invalid value"
        ) from None


def _read(path: Path) -> str:
    if path.stat().st_size > _LARGEST_BYTES:
        raise InvalidInput(f"{path} is larger than 16 MiB: give the manifests of the workloads alone")
    return path.read_text(encoding="utf-8")


def _objects(content: Any, node: yaml.Node, file: str) -> Iterator[_Document]:
    """The object, or those of a List."""
    line = node.start_mark.line + 1
    if content is None:
        return
    if not isinstance(content, dict) or not _is_named(content):
        raise InvalidInput(f"{file}:{line}: is not a Kubernetes object: it has no apiVersion and kind")
    if content["kind"].endswith("List") and isinstance(items := content.get("items"), list):
        for item, item_node in zip(items, _item_nodes(node), strict=True):
            yield from _objects(item, item_node, file)
        return
    yield _Document(content, file, line)


def _is_named(content: dict[str, Any]) -> bool:
    names = [content.get(key) for key in ("apiVersion", "kind")]
    return all(isinstance(name, str) and name for name in names)


def _item_nodes(node: yaml.Node) -> list[yaml.Node]:
    """The nodes of a List's items; of a key that is given twice, YAML takes the last."""
    found: list[list[yaml.Node]] = [value.value for key, value in node.value if key.value == "items"]
    return found[-1]


def _workload(document: _Document) -> CountedWorkload | None:
    """The workload that an object is; None for one without pods."""
    group, kind = document.kind
    if (group, kind) in _REPLICATED:
        counted = replicated(_converted(document, ReplicatedManifest), f"{document.where} {kind}")
    elif (group, kind) in _OTHERS:
        counted = _OTHERS[group, kind](document)
    elif _has_template(document.content):
        of_group = f" of {group}" if group else ""
        raise InvalidInput(
            f"{document.where} {shortened(kind)}{of_group} makes pods in a way that podtide does not know: leave it out, and "
            "give the number of its pods by --pods"
        )
    else:
        return None
    if not 0 <= counted.pods <= _MOST_PODS:
        raise InvalidInput(
            f"{document.where} {kind} {counted.name} is to have {counted.pods} pods: give a number from 0 to {_MOST_PODS}"
        )
    return counted


def _converted(document: _Document, shape: type[Any]) -> Any:
    try:
        return msgspec.convert(document.content, shape)
    except msgspec.ValidationError as error:
        words = str(error)[:1].lower() + str(error)[1:]
        raise InvalidInput(f"{document.where} {document.kind[1]} is refused: {words}") from None


_OTHERS: dict[tuple[str, str], Callable[[_Document], CountedWorkload]] = {
    ("", "Pod"): lambda document: pod(_converted(document, PodManifest)),
    ("batch", "Job"): lambda document: job(_converted(document, JobManifest)),
    ("batch", "CronJob"): lambda document: cron_job(_converted(document, CronJobManifest)),
}


def _has_template(content: dict[str, Any]) -> bool:
    """Whether an object has a pod template where workloads have it."""
    spec = content.get("spec")
    places = [spec]
    if isinstance(spec, dict):
        places += [
            value.get("spec")
            for key, value in spec.items()
            if key.endswith("emplate") and isinstance(value, dict)
        ]
    return any(isinstance(each, dict) and "containers" in each for each in places)


def _most_replicas(documents: list[_Document]) -> dict[tuple[str, str, str], int]:
    """The most replicas that autoscalers of the files allow, by namespace, kind and name."""
    largest: dict[tuple[str, str, str], int] = {}
    for document in documents:
        if document.kind == _AUTOSCALER:
            scaler: AutoscalerManifest = _converted(document, AutoscalerManifest)
            target = scaler.spec.scale_target_ref
            if not 1 <= scaler.spec.max_replicas <= _MOST_PODS:
                raise InvalidInput(
                    f"{document.where} maxReplicas {scaler.spec.max_replicas} is refused: give a number from 1 to {_MOST_PODS}"
                )
            largest[scaler.metadata.namespace, target.kind, target.name] = scaler.spec.max_replicas
    return largest


def _scaled(workload: CountedWorkload, largest: dict[tuple[str, str, str], int]) -> CountedWorkload:
    """The workload at the most replicas that its autoscaler allows."""
    most = largest.get((workload.namespace, workload.kind, workload.name))
    return workload if most is None else replace(workload, pods=max(workload.pods, most))
