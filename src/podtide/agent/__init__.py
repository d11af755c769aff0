"""The node agent: the node's pool of addresses, its journal, and the API that the CNI plugin calls."""
