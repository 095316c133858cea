"""SQLite itself: connections with the store's settings, and checkpoints of the log."""
