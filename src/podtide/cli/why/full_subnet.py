"""What `podtide why` says of a subnet that cannot give a node what it asks for: who has it, and what to do. Decides only."""

from podtide.cli.observed_node import ObservedNode
from podtide.cli.output import counted
from podtide.cli.suggested_commands import SuggestedCommands
from podtide.cli.why.subnets import SubnetFacts

_MOST_NAMED = 3


def subnet_obstacle(
    subnet: SubnetFacts, node: ObservedNode, commands: SuggestedCommands, *, ahead: bool = False
) -> str:
    """Why the node waits for addresses of the subnet; "" when it does not. `ahead`: why it would."""
    owed = subnet.owed()
    if (node.name not in owed and not ahead) or subnet.free is None:
        return ""
    debts = f"{counted(len(owed), 'node is', 'nodes are')} owed {counted(sum(owed.values()), 'address', 'addresses')}"
    if subnet.free:
        return (
            f"{counted(subnet.free, 'address is', 'addresses are')} free in subnet {subnet.name} and {debts}: "
            "the request controller grants them at its next look, within seconds"
        )
    parts = [f"subnet {subnet.name} is full: all {subnet.capacity} addresses are reserved"]
    if owed:
        parts.append(debts)
    parts += [words for words in (_idle(subnet), _elsewhere(subnet)) if words]
    return f"{', '.join(parts)}; grow it with `{commands.grow(subnet.network, subnet.name)}`, or remove pods"


def _idle(subnet: SubnetFacts) -> str:
    idle = subnet.idle()
    if not idle:
        return "none is idle"
    named = [f"{name} ({count})" for name, count in idle.items()][:_MOST_NAMED]
    if len(idle) > _MOST_NAMED:
        named.append(f"{len(idle) - _MOST_NAMED} more")
    words = f"{counted(sum(idle.values()), 'is', 'are')} idle on {', '.join(named)}"
    silent = sorted(set(subnet.silent()) & set(idle))
    if silent:
        return f"{words} (the agent of {silent[0]} has not answered the batch in force: see that it runs)"
    return f"{words} and given back as the batch goes down"


def _elsewhere(subnet: SubnetFacts) -> str:
    """What no node of this cluster shows. Only the allocator can tell other clusters' from quarantine."""
    if subnet.at_allocator is not None and subnet.at_allocator.quarantined:
        return f"{subnet.at_allocator.quarantined} in quarantine after their nodes left"
    return f"{subnet.elsewhere} held by other clusters or in quarantine" if subnet.elsewhere else ""
