"""Sharing of one event loop: semaphores, slots, locks, slices and rate limits."""
