"""The work that callers ask for: runs, jobs, workflows, plans, tasks, reviews and agents."""
