"""The look of every page: one style in light and dark mode, one script, and the note of what made the page.

The pages of the suite use it too. It lies here, since the server must not import the suite.
"""
