"""The demonstration: a whole cluster at work for a minute, told as a story, with its decisions as they are made."""
