"""Review of a task's results: evidence, checks by kind of artifact, a judge, the decision."""
