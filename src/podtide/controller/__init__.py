"""The request controller: nodes' requests become allocations, and every subnet's batch follows its utilization."""
