"""Members of share groups (KIP-932): records are locked, worked on and acknowledged one by one."""
