"""`podtide plan replay`: what a trace of pods, or a story, comes to by several batches and strategies. Start with `command`."""
