"""The wire as both clients speak it; none of it sends anything."""
