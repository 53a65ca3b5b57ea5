"""``kohort transactions``: open transactions, what they hold back, and their end."""
