"""The design papers' comparison, from the same code: ways to size a node's pool, under the same loads."""
