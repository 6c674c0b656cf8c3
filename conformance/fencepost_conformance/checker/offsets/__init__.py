"""Whether the offsets that were fetched are ones that could have been committed."""
