"""`podtide top`: how full the subnets are and the state of the nodes.

`sources` reads, `overview` computes, `tables` and `drawing` show.
"""
