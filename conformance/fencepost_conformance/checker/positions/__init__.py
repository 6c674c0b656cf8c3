"""Whether members read from where they may."""
