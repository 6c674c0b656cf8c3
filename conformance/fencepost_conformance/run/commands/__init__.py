"""One module for each command, with a function of the command's name."""
