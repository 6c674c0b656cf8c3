"""One module a command; each has a function of the command's name."""
