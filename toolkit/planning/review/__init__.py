"""Reviewing: checks of what a task made, and a judge of what they cannot see."""
