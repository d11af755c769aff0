"""What a container runtime does with a plugin: starts it on the node, with a pod's namespace and a configuration."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from namespaces.namespace import Namespace
from patience import PATIENCE_SECONDS

INTERFACE_PLUGINS = Path("/usr/lib/cni")
"""Where Debian's containernetworking-plugins are."""
POD_NAMESPACE = "default"

Document: TypeAlias = dict[str, Any]


class Refused(Exception):
    """A plugin has failed; `str()` of it is all that it printed."""


class Sandbox(Struct, frozen=True):
    """One try of a runtime to run a pod."""

    id: str
    pod: str
    uid: str
    namespace: Namespace
    """Where its interfaces go. A plugin that gives addresses alone never looks whether it is there."""

    def environment(self, verb: str, interface: str) -> dict[str, str]:
        """CNI's variables."""
        arguments = {
            "IgnoreUnknown": "1",
            "K8S_POD_NAMESPACE": POD_NAMESPACE,
            "K8S_POD_NAME": self.pod,
            "K8S_POD_INFRA_CONTAINER_ID": self.id,
            "K8S_POD_UID": self.uid,
        }
        return {
            "CNI_COMMAND": verb,
            "CNI_CONTAINERID": self.id,
            "CNI_NETNS": str(self.namespace.path),
            "CNI_IFNAME": interface,
            "CNI_ARGS": ";".join(f"{name}={value}" for name, value in arguments.items()),
        }


class Plugins(Struct, frozen=True):
    """The plugins of one node."""

    directories: tuple[Path, ...]
    """Where the runtime looks for them, and they for each other."""
    environment: Mapping[str, str]
    """What the node adds to CNI's variables."""
    inside: Sequence[str] = ()
    """What to put before a command that is to run on the node."""

    def add(self, network: Document, sandbox: Sandbox, interface: str = "eth0") -> Document:
        """ADD; the result."""
        return self.call("ADD", network, sandbox, interface)

    def check(self, network: Document, sandbox: Sandbox, result: Document, interface: str = "eth0") -> None:
        """CHECK that what ADD answered is still so."""
        self.call("CHECK", {**network, "prevResult": result}, sandbox, interface)

    def delete(self, network: Document, sandbox: Sandbox, interface: str = "eth0") -> None:
        """DEL."""
        self.call("DEL", network, sandbox, interface)

    def call(self, verb: str, network: Document, sandbox: Sandbox, interface: str = "eth0") -> Document:
        """Run the network's plugin, and answer what it printed. Refused when it failed."""
        return self.run(network["type"], network, sandbox.environment(verb, interface))

    def run(self, type_: str, configuration: Document, variables: Mapping[str, str]) -> Document:
        """Run a plugin by its type."""
        path = ":".join(map(str, self.directories))
        executable = next(each / type_ for each in self.directories if (each / type_).exists())
        done = subprocess.run(
            [*self.inside, executable],
            input=json.dumps(configuration),
            env={"PATH": os.environ["PATH"], "CNI_PATH": path, **self.environment, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        if done.returncode:
            raise Refused(f"{variables['CNI_COMMAND']} by {type_}: {done.stdout}{done.stderr}")
        answer: Document = json.loads(done.stdout or "{}")
        return answer


def addresses(result: Document) -> list[str]:
    """The addresses of a result, without their prefix lengths."""
    return [each["address"].partition("/")[0] for each in result["ips"]]
