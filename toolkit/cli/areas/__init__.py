"""One module per area, each with its group of commands as `app`: a file here is all it takes."""
