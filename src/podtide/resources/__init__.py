"""The Kubernetes objects podtide reads and writes, as typed structs; the CRDs are generated from them.

No I/O. Start with `base` and `node_network_config`; `codec` keeps fields that others wrote.
"""
