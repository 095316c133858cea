"""Planning and reviewing without I/O: the objective reader, the planner and the reviewer."""
