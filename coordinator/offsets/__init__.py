"""Committed offsets: stored, read, removed and expired, for groups of every type."""
