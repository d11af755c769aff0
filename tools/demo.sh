#!/usr/bin/env bash
# A tour of podtide's decisions, each asked for on the command line: `make demo`.
set -euo pipefail

# What the example shows, then the command and its answer.
show() {
    printf '\n%s\n\n' "$1"
    shift
    printf '    $ %s\n' "$*"
    "$@" | sed 's/^/    /'
}

show "A node with 25 pods asks once for all they need and half a batch to spare, in whole batches of 16:" \
    podtide explain request --demand 25 --batch 16 --min-free 0.5

show "One of those addresses is the node's own primary, so that what it takes in all stays a whole number of batches:" \
    podtide explain request --demand 25 --batch 16 --min-free 0.5 --primaries 1

show "The subnet behind it fills up. Over the upper threshold it is exhausted:" \
    podtide explain exhaustion --capacity 254 --reserved 230 --lower 0.8 --upper 0.9

show "Then every node keeps a single spare address, and gives back the rest:" \
    podtide explain request --demand 25 --batch 16 --min-free 0.5 --exhausted

show "Once exhausted, it stays so between the thresholds, so that it does not flicker:" \
    podtide explain exhaustion --capacity 254 --reserved 210 --lower 0.8 --upper 0.9 --exhausted

show "Long before that, the batch goes down step by step, so that exhaustion is the last resort:" \
    podtide explain batch --capacity 254 --reserved 210 --containers 5

show "A secondary network is cut into one slice per node, so that nodes do not queue for each other:" \
    podtide explain slices --range 10.0.0.0/16 --slice-size /24 --nodes a,b,c

network='{"type": "whereabouts", "range": "10.0.1.0/24", "gateway": "10.0.1.1", "exclude": ["10.0.1.2/31"]}'
show "A pod gets the lowest free address that its network allows; here, on standard input, $network" \
    podtide explain assign --ipam - --taken 10.0.1.4 <<<"$network"
