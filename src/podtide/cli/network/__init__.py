"""`podtide network`: secondary networks. Start with `command`."""
