"""PostgreSQL: connections, reads, writes, the clock, and notices of commits."""
