"""Tests of the limits that the engines of a deployment share."""
