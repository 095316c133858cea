"""The work that callers request: runs, jobs, workflows, plans, tasks, reviews and agents."""
