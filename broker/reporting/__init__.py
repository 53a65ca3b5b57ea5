"""What a broker reports in its logs: events of groups, and lines that clients cause."""
