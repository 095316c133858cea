"""What the writer does in a database of PostgreSQL: its statements, and what became of a commit."""
