"""A page on which an explored state graph can be walked."""
