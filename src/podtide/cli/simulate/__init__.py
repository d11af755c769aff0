"""`podtide simulate`: a cluster on virtual time, from a seed or from a scenario file. Start with `command`."""
