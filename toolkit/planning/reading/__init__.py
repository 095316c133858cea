"""Reading an objective: its words, by the lexicon of its language, into what is requested."""
