"""Pictures that simulated models draw, and how simulated models see pictures."""
