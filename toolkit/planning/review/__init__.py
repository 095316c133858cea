"""Reviewing what a task made: evidence, checks by kind of artifact, a judge, and the decision."""
