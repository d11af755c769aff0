"""`podtide placement`: what placement wrote on Nodes, for who turns it off. Start reading at `command`."""
