"""Every Event and every condition, with what to make of it.

The words stand here, and the names in the code: a test finds the names there and holds that none is missing here.
"""

from collections.abc import Iterator

from reference.markdown import code, table

EVENTS = {
    "ClusterSubnet": {
        "Exhausted": "Warning. More addresses are reserved than the upper threshold allows (R > T·Q).",
        "Recovered": "Fewer are reserved than the lower threshold (R < t·Q).",
        "Starved": "Warning. Nodes are owed addresses and none is left: nodes keep no free address.",
        "Fed": "As many addresses are free again as there are network containers.",
        "BatchReduced": "A smaller batch is in force; the message has the inequality that decided.",
        "BatchRaised": "A larger batch is in force; the message has the inequality that decided.",
        "BatchConfigured": "The batch changed because the bounds were changed.",
        "RunsOutSoon": "Warning. The day on which all addresses are reserved is within `runs_out_warning`.",
    },
    "NodeNetworkConfig": {
        "AddressesMoved": "The machine was registered again as another Node, and its earlier addresses were moved to it.",
        "AddressesLost": "Warning. Some of its earlier addresses had been granted to other nodes: the agent's log names the pods to delete.",
        "AddressHeldTwice": "Warning. Two nodes reported the same address to an allocator whose database was restored.",
        "ServedByAnotherProgram": "Warning. Another program serves this object, and the controller does not change it.",
    },
    "Node": {
        "AddressesQuarantined": "Addresses of a removed Node are in quarantine before they can be granted again.",
        "QuarantineHeld": "Warning. They stay in quarantine until the machine returns or is rebooted, or a person ends it (`podtide quarantine end`).",
    },
    "Lease podtide-controller": {
        "ControllerRefused": "Warning. The allocator does not let this controller act for its cluster.",
        "RetirementHeld": "Warning. Many Nodes seem deleted at once: their addresses are freed only after a second check.",
    },
    "NetworkAttachmentDefinition": {
        "InvalidConfig": "Warning. The definition's configuration cannot be used; the message says why.",
        "Disagreement": "Warning. Definitions of one network state different ranges or slices; the message says which is in force.",
        "NameTaken": "Warning. The NodeSlicePool of that name belongs to another network: choose another `network_name`.",
    },
}
"""Those that are written with a reason of their own, by the object that they are on."""

CONDITIONS = {
    "NodeNetworkConfig": {
        "Granted": {
            "Complete": "True. The node has everything it requested.",
            "SubnetShort": "Part was granted; the rest follows when other nodes give addresses back.",
            "SubnetFull": "A new node, and not even a primary address is left.",
            "AllocatorUnavailable": "The allocator does not answer; the controller retries.",
            "AllocatorRecovering": "The allocator's database was restored; it grants again when every cluster has reported.",
            "AnotherCluster": "The cluster's name at the allocator belongs to another cluster.",
            "NoSuchSubnet": "The label or option names a subnet that the allocator does not have.",
            "NotAllowed": "The controller's token is not one of this cluster.",
            "StaleWish": "The allocator has seen a newer request; the controller reads the object again and retries.",
            "Refused": "The allocator refuses the request; the message has its error.",
        },
        "Placed": {
            "AsStated": "True. The node's addresses are in the subnet that is stated.",
            "InAnotherSubnet": "Label or option name another subnet than the one the node's addresses are in.",
        },
        "Confirmed": {
            "AskedByAgent": "True. The status shows the allocator's state from after the agent asked for confirmation."
        },
        "FormerAddresses": {
            "InQuarantine": "True. Addresses of an earlier Node of this name are in quarantine.",
            "Settled": "No address of an earlier Node is left.",
        },
    },
    "ClusterSubnet": {
        "OverrideAccepted": {
            "NoOverride": "True. The spec is empty: the controller's settings are the bounds.",
            "Accepted": "True. The spec is used as bounds.",
            "Refused": "The spec is invalid; the previous bounds stay.",
        },
        "BatchAsConfigured": {
            "AsConfigured": "True. The largest batch that this cluster allows is in force.",
            "SubnetShort": "A smaller one is in force, because no larger one is known to fit.",
            "Starved": "Batch 1 and buffer 0: nodes are owed addresses and none was left.",
            "AnotherCluster": "Another cluster of the subnet allows less.",
        },
        "AllocatorReachable": {
            "Answering": "True. The allocator answers again.",
            "AllocatorUnavailable": "The allocator does not answer: the numbers are old.",
        },
        "RunsOut": {
            "Soon": "True. All addresses are reserved within `runs_out_warning`.",
            "Later": "True. They are within a year.",
            "Full": "True. They are now.",
            "NotWithinAYear": "They are not within a year.",
        },
        "Full": {
            "NoAddresses": "True. No address is available, even if nodes keep none free.",
            "AddressesAvailable": "Addresses are available for more pods.",
        },
        "AllNodesPublish": {
            "Covered": "True. Every schedulable node publishes how many pods it has addresses for. Only with [placement](../placement.md).",
            "NodesWithoutAddresses": "Some do not; the message names them.",
        },
    },
    "NodeSlicePool": {
        "Accepted": {
            "AsStated": "True. The range is cut as it is stated.",
            "Disagreement": "Two definitions of the network state different things.",
            "WouldMoveLiveSlices": "The stated range or slice size would move slices that pods use.",
        },
        "Served": {
            "EveryNode": "True. Every node has a slice.",
            "NoSliceFree": "Nodes wait for a slice: the range has no more.",
            "ObjectTooLarge": "The list of slices is as long as an object can be.",
        },
    },
}


def page() -> Iterator[str]:
    """The page of Events and conditions."""
    yield "# Events and conditions"
    yield "`kubectl describe` shows them. Conditions carry the state, Events tell of its changes; [the request controller](../controller.md) says what leads to each."
    yield ""
    yield "## Events"
    yield ""
    yield "Where the reason of `Granted`, or of a condition of a NodeSlicePool, changes, there is an Event of that reason, too: a warning unless the condition is True."
    yield ""
    rows = [(about, code(name), words) for about, events in EVENTS.items() for name, words in events.items()]
    yield from table(("On", "Event", "When"), rows)
    for kind, conditions in CONDITIONS.items():
        yield f"## Conditions of a {kind}"
        yield ""
        of_kind = [
            (code(condition), code(reason), words)
            for condition, reasons in conditions.items()
            for reason, words in reasons.items()
        ]
        yield from table(("Condition", "Reason", "What it says"), of_kind)
