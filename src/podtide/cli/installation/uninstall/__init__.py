"""`podtide uninstall`: podtide leaves a cluster. `core.removal` decides what goes; start reading at `command`."""
