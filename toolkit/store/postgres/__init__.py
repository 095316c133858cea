"""PostgreSQL itself: connections, and how it reads, writes, counts time and tells of commits."""
