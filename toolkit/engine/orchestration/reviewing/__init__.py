"""Reviewing what tasks made: their attempts, the evidence, the judge, and the verdicts of people."""
