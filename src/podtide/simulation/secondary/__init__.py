"""Secondary networks in a simulated cluster: which there are, what pods have of them, and what must be so of it."""
