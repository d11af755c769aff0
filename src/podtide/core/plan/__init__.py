"""Which subnet a cluster needs, and whether a rollout fits: the decisions of `core.subnet`, asked about what is not there yet.

Pure. Start with `sizing`, a whole cluster by batch and strategy, and `fit`, more pods beside those that run; `settled_batch`
tells which batch the pods of a cluster lead to, and `reactive_pool` and `warm_pool` what other programs would hold.
"""
