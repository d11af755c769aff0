"""Which node has which slice of a secondary network: from NetworkAttachmentDefinitions and Nodes to pools."""
