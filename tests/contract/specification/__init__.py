"""The specification, sentence by sentence; `tests/contract/test_specification.py` is the entry."""
