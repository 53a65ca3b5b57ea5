"""Connections: who is let in, how they are read, the order of responses, and limits on what they hold."""
