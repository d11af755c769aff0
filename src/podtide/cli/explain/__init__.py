"""`podtide explain`: every decision of the core with numbers of one's own, a module each. Start with `command`."""
