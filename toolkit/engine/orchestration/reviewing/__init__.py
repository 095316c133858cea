"""Reviewing what tasks made: their attempts, the evidence, and the verdicts of people."""
