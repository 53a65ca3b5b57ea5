"""What all schedules run on: virtual time, event loops, connections, disks that fail, plans and runs."""
