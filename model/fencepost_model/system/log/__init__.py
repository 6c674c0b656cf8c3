"""The closed log: one partition of the coordinators' topic on several brokers, its cleaners and its elections."""
