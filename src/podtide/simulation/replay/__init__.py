"""A trace of pods, or a story, replayed on virtual time by the production programs, for several strategies and batches.

    trace_time      times as people and Prometheus write them
    trace_file      the CSV file of a trace, read with care
    pod_trace       what a trace says, a part of it, a multiple of it
    pod_changes     which pod comes and goes when and on which node, drawn from a seed
    levels          counts over time: their mean and quantiles
    tally           what is counted while the programs run
    figures         the counts of one run, and their sums
    trace_replay    one run of a trace
    story_replay    one run of a story
    processes       several runs side by side

Start with `trace_replay`.
"""
