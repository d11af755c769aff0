"""Whom a call of the plugin is about."""

from podtide.cni.arguments import CniCall
from podtide.core.pool.pool import Owner


def owner_of(call: CniCall, network: str = "") -> Owner:
    """The sandbox's interface, with all that the runtime says about its pod."""
    return Owner(
        sandbox=call.container_id,
        interface=call.ifname,
        pod=call.pod.pod_uid,
        namespace=call.pod.pod_namespace,
        name=call.pod.pod_name,
        network=network,
    )
