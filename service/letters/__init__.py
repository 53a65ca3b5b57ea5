"""Letters: records on which a handler failed, in topics of dead letters or of retries."""
