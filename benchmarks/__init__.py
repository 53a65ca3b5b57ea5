"""Measurements, each beside its peers: ``python -m benchmarks`` runs them all, ``--list`` names them."""
