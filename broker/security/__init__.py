"""Security of connections: listeners, TLS, SASL, and limits on their number."""
