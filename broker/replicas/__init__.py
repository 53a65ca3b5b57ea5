"""Replicas on a broker of a cluster: which it leads, and how it copies the others."""
