"""Output for people and for other programs: the terminal, reports, charts and listings."""
