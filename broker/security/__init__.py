"""Security of connections: listeners, TLS, SASL, limits of their number."""
