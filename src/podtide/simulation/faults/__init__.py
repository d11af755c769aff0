"""What can go wrong in a simulated run: on the connections between programs, and to the programs themselves.

A module holds the faults of one idea: requests, answers, watches, programs, machines, disks, stores and so on. A new fault
is a class in one of these, and its line in `table`. Nothing else knows which faults there are.
"""
