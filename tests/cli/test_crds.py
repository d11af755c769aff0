"""What is said of a kind that the server does not know is true: the command prints that kind's CRD."""

import json
import re

import pytest
import yaml

from cli.conftest import Run
from podtide.cluster.kubernetes import requests
from podtide.cluster.kubernetes.answers import refusal
from podtide.resources.base import Resource
from podtide.resources.kinds import PODTIDE_KINDS
from podtide.resources.network_attachment import NetworkAttachmentDefinition


@pytest.mark.parametrize("kind", [*PODTIDE_KINDS, NetworkAttachmentDefinition])
def test_the_command_named_for_an_unknown_kind_prints_its_definition(
    podtide: Run, kind: type[Resource]
) -> None:
    everything = requests.ListSelection(api=kind.api, namespace="", fields="", labels="")
    request = requests.list_page(everything, limit=500)
    error = refusal(request.doing, request.path, 404, b"404 page not found\n", None)
    (command,) = re.findall(r"`podtide (.+) \| kubectl apply -f -`", str(error))
    outcome = podtide(*command.split())
    assert (outcome.status, outcome.err) == (0, "")
    documents = list(yaml.safe_load_all(outcome.out))
    assert f"{kind.api.plural}.{kind.api.group}" in [each["metadata"]["name"] for each in documents]
    assert json.loads(podtide(*command.split(), "-o", "json").out)["items"] == documents
    names = podtide(*command.split(), "-o", "name").out.split()
    assert names == [
        f"customresourcedefinition.apiextensions.k8s.io/{each['metadata']['name']}" for each in documents
    ]
