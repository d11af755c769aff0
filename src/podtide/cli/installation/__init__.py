"""The commands by which podtide comes into a cluster, takes over from another program, and leaves: crds, migrate, uninstall, uninstall-cni."""
