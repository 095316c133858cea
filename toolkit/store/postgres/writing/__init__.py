"""The writer's part for PostgreSQL: its statements, and the outcome of a commit."""
