"""podtide beside host-local and Whereabouts, in one run on one real API server, taking turns: `make peers`.

Every contender is called as a container runtime calls an IPAM plugin: an executable with CNI's variables and a
configuration on its stdin. Start reading with `loads`, which says what is measured; `contenders` says who takes part.
"""
