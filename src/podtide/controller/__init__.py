"""The request controller: nodes' requests become allocations, and each subnet has the batch that its nodes' demand allows."""
