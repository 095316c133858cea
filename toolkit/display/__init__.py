"""Contract models as people read them: text, HTML, tables, pictures; without I/O."""
