"""Simulated brokers as they ship, alone or in a cluster, and the processes of their clients."""
