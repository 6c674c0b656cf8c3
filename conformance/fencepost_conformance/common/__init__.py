"""The shared basis of all packages: errors, numbers with nouns, suggestions, addresses, processes and interruption."""
