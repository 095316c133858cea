"""Text written without a model: parsing of prompts, prose, filled schemas and the library."""
