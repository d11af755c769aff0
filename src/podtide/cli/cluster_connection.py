"""How a command reaches a cluster: by a kubeconfig, or from within a pod."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec import Struct

from podtide.cli.named_file import NamedFile
from podtide.cli.names import NAMESPACE
from podtide.cluster.kubernetes import Access, ApiServerTimeouts, KubernetesCluster, find_access
from podtide.cluster.port import Cluster
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.runtime.clock import SystemClock
from podtide.runtime.randomness import system_randomness

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])

_TIMEOUTS = ApiServerTimeouts(connect_seconds=3.0, answer_seconds=15.0)
"""A person waits for the answer."""


class ClusterReach(Struct, frozen=True, kw_only=True):
    """Which cluster, as the options say."""

    kubeconfig: Path | None
    context: str

    def ask(self, question: Callable[[Cluster], Awaitable[T]]) -> T:
        """The answer to one question."""
        return asyncio.run(self._ask(question))

    async def _ask(self, question: Callable[[Cluster], Awaitable[T]]) -> T:
        async with self.cluster() as cluster:
            return await question(cluster)

    @asynccontextmanager
    async def cluster(self) -> AsyncIterator[Cluster]:
        """The cluster, until the context ends."""
        async with KubernetesCluster(
            self.access(), clock=SystemClock(), randomness=system_randomness(), timeouts=_TIMEOUTS
        ) as cluster:
            yield cluster

    def namespace(self) -> str:
        """The namespace to work in where nobody names one; "" when nothing says which."""
        return self.access().namespace

    def networks_namespace(self) -> str:
        """Where the pools of secondary networks are when nobody says: in the namespace of the kubeconfig's context.

        Where that has none it is kube-system (WIRE.md §5), and so it is in a pod, whose own namespace says where
        podtide runs, and not where pools are.
        """
        access = self.access()
        contexts_own = "" if access.is_pods_own else access.namespace
        return contexts_own or SYSTEM_NAMESPACE

    def access(self) -> Access:
        """How to reach it, and as whom."""
        return find_access(
            kubeconfig=self.kubeconfig, context=self.context, environment=os.environ, home=Path.home()
        )


networks_namespace_option = click.option(
    "--networks-namespace",
    type=NAMESPACE,
    default="",
    metavar="NAME",
    help="Where the pools of secondary networks are. Default: the namespace of the kubeconfig's context, else kube-system.",
)
"""Names a namespace; "" is for `ClusterReach.networks_namespace` to answer."""


def cluster_options(command: Command) -> Command:
    """Adds the options that say which cluster; the command gets a `ClusterReach` as `there`."""

    @wraps(command)
    def reaching(*, kubeconfig: Path | None, context: str, **others: Any) -> Any:
        return command(there=ClusterReach(kubeconfig=kubeconfig, context=context), **others)

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
