"""`podtide release`: frees one address by hand. `targets` finds and judges it, `command` asks and carries out."""
