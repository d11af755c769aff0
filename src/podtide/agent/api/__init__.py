"""The agent's API on its unix socket, and for Azure CNS on TCP: who calls, what is answered, who has to wait.

Start with `server` and `cni_calls`; `address_service` is the pool as the API sees it.
"""
