"""The store's writes: submissions, their SQL, and the only writer."""
