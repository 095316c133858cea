"""Tests of the sentences of the specification; `test_complete.py` finds sections without tests."""
