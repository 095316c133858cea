"""Tasks: planned or given, reviewed, retried, asked about, judged by a person."""
