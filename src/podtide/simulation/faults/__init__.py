"""What can go wrong, each in a small file of its own: on the lines between programs, and to the programs themselves.

A new fault is a new file and its line in `table`. Nothing else knows which faults there are.
"""
