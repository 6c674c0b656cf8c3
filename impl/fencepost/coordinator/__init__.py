"""The group coordinator as one pure step function."""
