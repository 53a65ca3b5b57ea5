"""Whole services through every fault: the shipped consumer and ConsumerService on a simulated loop and cluster."""
