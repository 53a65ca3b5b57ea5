"""What a broker remembers of its clients: identity, fetch sessions, commits and batches sent again."""
