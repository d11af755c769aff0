"""`podtide why`: the chain of decisions behind a pod's address, or behind its absence."""

from collections.abc import Iterator

import click

from podtide.cli.output import output_option, show
from podtide.cli.reaching_cluster import ClusterReach, cluster_options
from podtide.cli.why_chain import Chain, build_chain
from podtide.cli.why_facts import gather_facts
from podtide.cluster.port import Cluster
from podtide.runtime.clock import SystemClock

_DEFAULT_NAMESPACE = "default"


@click.command()
@click.argument("name", metavar="POD|NODE")
@click.option(
    "-n", "--namespace", default="", help="The pod's namespace. Default: the context's, else default."
)
@cluster_options
@output_option
def why(*, name: str, namespace: str, there: ClusterReach, output: str) -> None:
    """Explain why a pod has its address, or has none.

    POD|NODE is a name, pod/NAME or node/NAME; a bare name is a pod's before it is a node's. All is concluded from the
    cluster's objects, by the functions that podtide's programs decide with. The last line says what happens next.
    """

    async def explain(cluster: Cluster) -> Chain:
        where = namespace or there.namespace() or _DEFAULT_NAMESPACE
        return build_chain(await gather_facts(cluster, name, where, SystemClock().wall()))

    chain = there.ask(explain)
    show(output, chain, _lines(chain))


def _lines(chain: Chain) -> Iterator[str]:
    yield chain.verdict
    width = max((len(link.topic) for link in chain.links), default=0)
    for link in chain.links:
        yield f"  {link.topic.ljust(width)}  {link.words}"
        yield from (f"  {'':{width}}  {detail}" for detail in link.details)
    yield f"next: {chain.next}"
