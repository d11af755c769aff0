"""`podtide why`: the chain of decisions behind a pod's address.

command        the options, and the text that is printed
facts          everything that is read: the pod, its node, its subnets, the controllers' Lease
right_request  what the node's agent should ask for, by the functions of the core
next_step      the first line: what happens next, or what a person should do
chain          all links of the chain
"""
