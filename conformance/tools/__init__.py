"""Programs for developers of the project, each run with ``python -m tools.NAME``; a wheel does not have them."""
