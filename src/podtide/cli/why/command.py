"""`podtide why`: the chain of decisions behind a pod's address, or behind its absence."""

from collections.abc import Iterator
from contextlib import AsyncExitStack

import click

from podtide.allocator.errors import AllocatorUnavailable
from podtide.cli.connections.allocator import AllocatorLocation, optional_allocator_options
from podtide.cli.connections.cluster import ClusterConnection, cluster_options
from podtide.cli.output.formats import output_option, rendered
from podtide.cli.output.screen_width import folded, screen_width
from podtide.cli.output.suggested_commands import own_commands
from podtide.cli.output.watching import Watching, print_answer, watch_options
from podtide.cli.why.chain import DecisionChain, build_chain
from podtide.cli.why.facts import gather_facts
from podtide.runtime.clock import SystemClock

_DEFAULT_NAMESPACE = "default"


@click.command()
@click.argument("name", metavar="POD|NODE")
@click.option(
    "-n", "--namespace", default="", help="The pod's namespace. Default: the context's, else default."
)
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Show formulas as well, and all conditions and Events of the subnet.",
)
@cluster_options
@optional_allocator_options
@watch_options
@output_option
def why(  # noqa: PLR0913 - one argument per option
    *,
    name: str,
    namespace: str,
    verbose: bool,
    there: ClusterConnection,
    location: AllocatorLocation | None,
    watching: Watching | None,
    output: str,
) -> None:
    """Explain why a pod has its address, or has none.

    POD|NODE is a name, pod/NAME or node/NAME; a bare name is looked up as a pod first, then as a node. The first line
    is what is so and what to do. Everything is concluded from the cluster's objects, by the functions that podtide's
    programs decide with; if --allocator or --database is given, the allocator is asked how full the subnet is.
    """

    async def look() -> str:
        chain = await _explain(name, namespace, there, location)
        return rendered(output, chain, lines_of(chain, verbose=verbose, width=screen_width()))

    print_answer(look, watching)


async def _explain(
    name: str, namespace: str, there: ClusterConnection, location: AllocatorLocation | None
) -> DecisionChain:
    where = namespace or there.namespace() or _DEFAULT_NAMESPACE
    async with AsyncExitStack() as open_until_done:
        cluster = await open_until_done.enter_async_context(there.cluster())
        allocator, in_vain = None, None
        try:
            allocator = await open_until_done.enter_async_context(location.allocator()) if location else None
        except AllocatorUnavailable as error:
            in_vain = error  # the database is down: everything else can still be explained
        facts = await gather_facts(cluster, name, where, SystemClock().wall(), allocator)
    errors = (in_vain, *(subnet.allocator_error for subnet in facts.subnets))
    first = next(filter(None, errors), None)
    not_asked = location.asked_in_vain(first) if location and first else ""
    return build_chain(facts, own_commands(there, location), not_asked)


def lines_of(chain: DecisionChain, *, verbose: bool, width: int | None) -> Iterator[str]:
    """The answer as text. On a terminal the links are wrapped, but not the first line, whose command is to be copied."""
    yield chain.headline
    links = [link for link in chain.links if verbose or not link.is_verbose]
    indent = max((len(link.topic) for link in links), default=0) + 4
    for link in links:
        first, rest = f"  {link.topic}".ljust(indent), " " * indent
        yield from folded(first, rest, link.words, width)
        for detail in link.details:
            yield from folded(rest, rest, detail, width)
