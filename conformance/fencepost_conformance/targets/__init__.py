"""Implementations that can be tested, behind one small interface."""
