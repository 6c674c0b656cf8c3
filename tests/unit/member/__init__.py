"""Tests of the classic consumer as a step function."""
