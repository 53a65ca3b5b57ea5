"""Handlers: how they are registered, what they are given, and how often a record is tried again."""
