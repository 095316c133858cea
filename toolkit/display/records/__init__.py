"""Records as facts and tables: of text, HTML and data frames."""
