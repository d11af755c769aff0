"""What a program runs in: clock, randomness, ids, disk, settings, logging. Each a parameter, none global."""
