"""Reviewing what tasks made: attempts, evidence, the judge, and the verdicts of people."""
