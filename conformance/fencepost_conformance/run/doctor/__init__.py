"""``fencepost doctor``: what is installed, and which jobs of Fencepost can run with it.

``parts`` looks for each thing with the function that the jobs use, so that the two cannot disagree. ``jobs`` says which
job needs which parts. Nothing here needs a package of an extra.
"""
