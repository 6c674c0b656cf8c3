"""What every package uses: errors, numbers with nouns, suggestions, addresses, processes and interruption."""
