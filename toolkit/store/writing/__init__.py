"""The writing side of the store: submissions, their SQL, and the one writer."""
