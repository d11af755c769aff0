"""`podtide support-bundle`: what a person needs to look into a problem from afar, in one file without secrets.

`contents` reads, `redaction` takes out what must not leave, `command` writes the file.
"""
