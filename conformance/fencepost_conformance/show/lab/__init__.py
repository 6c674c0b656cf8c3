"""The page of the laboratory: the view of a session as JSON data, and the files of the page."""
