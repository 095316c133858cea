"""Audio: synthesized speech, and the headers of recordings."""
