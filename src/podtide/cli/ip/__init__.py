"""`podtide ip`: whose an address is.

`facts` reads, `finding` says what the address is to each subnet and network, `past` what it was, `command` prints.
"""
