"""The words of a language: its lexicon, its closed classes, numbers, spelling."""
