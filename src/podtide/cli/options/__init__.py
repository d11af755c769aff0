"""What several commands take as options and arguments: numbers, paths, names, where the page is served, what an agent installs.

Each kind of value has one type here, so that a wrong one is refused everywhere in the same words, before any call.
"""
