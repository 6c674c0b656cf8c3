"""The request handlers of each API, by area. ``table`` lists all APIs with their versions."""
