"""The limits that the engines of a deployment share, as they are stored."""
