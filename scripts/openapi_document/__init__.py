"""The OpenAPI document: operations, examples and the document itself."""
