"""Groups of every type: what they share, their state in the log, their events, and who coordinates them."""
