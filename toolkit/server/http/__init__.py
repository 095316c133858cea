"""HTTP in and out: bodies, envelopes, events, pages, uploads and `Prefer: wait`."""
