"""`podtide node`: one node's pool and slices. `answer` computes, `command` reads and prints."""
