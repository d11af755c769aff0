"""What is checked while a simulated cluster is at work. Start with `address_book` and `network_book`.

A check hears of every change at the programs' ports; what it finds, programs never hear of.
"""
