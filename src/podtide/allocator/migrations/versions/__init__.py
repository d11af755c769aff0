"""The steps, each named by the schema it leads to."""
