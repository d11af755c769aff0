"""podtide as a program of a shell: the name it was called by, commands imported when used, completion, exit statuses."""
