"""One module for each resource, each with its group of commands as `app`: all that is needed.

`verbs` makes what areas have in common (`reads`, `deletes`, `follows`) of the area's name on the
client; the first command of a group is what the name of the area alone does.
"""
