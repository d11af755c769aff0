"""Addresses of secondary networks: as pods have them, and as the networks' pools say."""

import json
from ipaddress import ip_address, ip_network

from node_bench.cluster import NodeCluster
from node_bench.workloads import Pod


def held(cluster: NodeCluster) -> dict[str, str]:
    """The pods that hold an address of the network, as its pools say, by the address."""
    answer = json.loads(cluster.podtide.kubectl("get", "ippools", "--output=json"))
    return {
        str(
            ip_address(int(ip_network(pool["spec"]["range"], strict=False).network_address) + int(offset))
        ): of["podref"]
        for pool in answer["items"]
        for offset, of in pool["spec"].get("allocations", {}).items()
    }


def second_address(cluster: NodeCluster, pod: Pod, interface: str) -> str:
    shown = cluster.workloads.run_in(pod, "ip", "-4", "-o", "address", "show", "dev", interface)
    return shown.split(" inet ")[1].split("/")[0].strip()
