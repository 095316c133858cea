"""Ask for capabilities, not vendors."""
