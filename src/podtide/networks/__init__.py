"""What a secondary network is: which ranges it has, and under which names its objects are found.

No I/O: works on objects that others have read. Start with `network`.
"""
