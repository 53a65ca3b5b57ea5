"""What goes wrong in a schedule of brokers, beside what happens to their processes, disks and connections."""
