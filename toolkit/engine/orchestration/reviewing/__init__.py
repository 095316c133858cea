"""Review of tasks' results: attempts, evidence, the judge, and the verdicts of people."""
