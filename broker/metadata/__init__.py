"""Topics, features and settings as the cluster has them, and this broker's part in the cluster."""
