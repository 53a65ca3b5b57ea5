"""What clients do in a schedule of brokers. Each workload starts its processes, says what is not settled when
the faults are over, and checks what has come of it.
"""
