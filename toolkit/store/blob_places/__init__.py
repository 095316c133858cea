"""The places where artifacts' bytes may be: a folder, or object storage that fsspec reaches."""
