"""CNI and IPAM configuration, results and errors: parsing and rendering, no I/O."""
