"""`podtide migrate`: from another program's networks to podtide's. Start with `command`."""
