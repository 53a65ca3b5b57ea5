"""Services of share groups (KIP-932): their records, deliveries, retries, and lag."""
