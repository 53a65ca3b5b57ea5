"""Simulates several brokers with a share group under faults (KIP-932)."""

from ._simulate import simulate_share_groups, trace_share_groups

__all__ = ["simulate_share_groups", "trace_share_groups"]
