"""Tasks: planned or with a given plan, questions, reviews, retries."""
