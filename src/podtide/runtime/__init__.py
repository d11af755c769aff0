"""What a program runs in: clock, randomness, ids, disk, settings, logging, open ports. Each a parameter, none global.

Knows nothing of Kubernetes or of addresses. Start with `clock`, `disk` and `settings`.
"""
