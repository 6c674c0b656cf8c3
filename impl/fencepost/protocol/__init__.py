"""The vocabulary shared by coordinator, model and suite: messages, errors, records, events, settings.

This is the only part of ``fencepost`` that the model may import.
"""
