"""Who may do what on a cluster, and how much: access rules, SCRAM users, quotas, configs and features."""
