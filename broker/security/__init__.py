"""Who may connect, how they prove who they are, and how many there may be: listeners, TLS, SASL, limits."""
