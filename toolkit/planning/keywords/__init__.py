"""The keyword planner: plans an objective if it knows every clause of it, and asks otherwise."""
