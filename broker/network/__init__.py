"""Connections: who gets in, what is read of them, in what order they are answered, and what all may hold."""
