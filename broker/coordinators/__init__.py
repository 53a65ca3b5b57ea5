"""What coordinators ask of the broker that runs them: ends of transactions, and states of share groups."""
