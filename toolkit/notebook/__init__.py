"""What a notebook has beside the client: magics, by `%load_ext toolkit`."""
