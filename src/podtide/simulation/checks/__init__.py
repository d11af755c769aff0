"""What is checked while a simulated cluster is at work. Start with `address_book` and `network_book`.

A check is called with every change at the programs' ports. Its findings are never passed to programs.
"""
