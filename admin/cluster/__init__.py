"""Brokers and replicas: ``kohort cluster`` and ``kohort top``."""
