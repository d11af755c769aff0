"""How a command reaches a cluster: by a kubeconfig, or from within a pod."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct

from podtide.cli.options.names import NAMESPACE
from podtide.cli.options.paths import NamedFile
from podtide.cluster.port import Cluster
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.runtime.clock import SystemClock
from podtide.runtime.randomness import system_randomness

if TYPE_CHECKING:
    from podtide.cluster.kubernetes import Access

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])

_CONNECT_SECONDS = 3.0
_ANSWER_SECONDS = 15.0
"""Short, because a person waits for the answer."""


class ClusterConnection(Struct, frozen=True, kw_only=True):
    """The options that say which cluster."""

    kubeconfig: Path | None
    context: str

    def ask(self, question: Callable[[Cluster], Awaitable[T]]) -> T:
        """Runs a question, and returns the answer."""
        return asyncio.run(self._ask(question))

    async def _ask(self, question: Callable[[Cluster], Awaitable[T]]) -> T:
        async with self.cluster() as cluster:
            return await question(cluster)

    @asynccontextmanager
    async def cluster(self) -> AsyncIterator[Cluster]:
        """Yields the cluster, open until the context ends."""
        from podtide.cluster.kubernetes import ApiServerTimeouts, KubernetesCluster  # noqa: PLC0415 - the most of a command's start, and not every command asks a cluster

        async with KubernetesCluster(
            self.access(),
            clock=SystemClock(),
            randomness=system_randomness(),
            timeouts=ApiServerTimeouts(connect_seconds=_CONNECT_SECONDS, answer_seconds=_ANSWER_SECONDS),
        ) as cluster:
            yield cluster

    def namespace(self) -> str:
        """The namespace of the kubeconfig's context, or of the pod; "" if neither states one."""
        return self.access().namespace

    def networks_namespace(self) -> str:
        """The default namespace of the pools of secondary networks: that of the kubeconfig's context, else kube-system.

        In a pod it is kube-system (design W18): the pod's own namespace says where podtide runs, and not where pools
        are.
        """
        access = self.access()
        contexts_own = "" if access.is_pods_own else access.namespace
        return contexts_own or SYSTEM_NAMESPACE

    def access(self) -> "Access":
        """How to reach the cluster, and with which credentials."""
        from podtide.cluster.kubernetes import find_access  # noqa: PLC0415 - as above

        return find_access(
            kubeconfig=self.kubeconfig, context=self.context, environment=os.environ, home=Path.home()
        )


networks_namespace_option = click.option(
    "--networks-namespace",
    type=NAMESPACE,
    default="",
    metavar="NAME",
    help="The namespace of secondary networks' pools. Default: that of the kubeconfig's context, else kube-system.",
)
"""The namespace of the pools; where it is "", `ClusterConnection.networks_namespace` is the default."""


def cluster_options(command: Command) -> Command:
    """Adds the options that say which cluster; the command gets a `ClusterConnection` as `there`."""

    @wraps(command)
    def reaching(*, kubeconfig: Path | None, context: str, **others: Any) -> Any:
        return command(there=ClusterConnection(kubeconfig=kubeconfig, context=context), **others)

    for option in (
        click.option("--context", default="", help="The context of the kubeconfig to use."),
        click.option(
            "--kubeconfig",
            type=NamedFile(),
            help="The kubeconfig to use. Default: $KUBECONFIG, else the pod this runs in, else ~/.kube/config.",
        ),
    ):
        reaching = option(reaching)
    return reaching  # type: ignore[return-value]  # its options are the command's and these
