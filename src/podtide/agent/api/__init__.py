"""The agent's API: the CNI plugin's calls on a unix socket, and the API of Azure CNS there and on TCP.

Start with `server`, `plugin_connections` and `cni_calls`; `address_service` is the port to the node's addresses.
"""
