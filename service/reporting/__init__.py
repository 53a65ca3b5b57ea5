"""What a service tells: probes, Prometheus metrics, its log, and spans."""
