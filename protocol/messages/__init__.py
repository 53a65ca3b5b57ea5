"""Kafka's messages, written from their schemas by ``scripts/generate_messages.py``: a module for each API."""
