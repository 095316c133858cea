"""Tests of tasks as the engine carries them out."""
