"""One run of a service: the engine, key queues, calls that run for long, signals, worker processes."""
