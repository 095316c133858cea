"""One module for each resource, each with its group of commands as `app`: all that is needed.

`resource_commands` adds the commands that resources have in common, by the resource's name on the
client; the first command of a group is what the name of the resource alone runs.
"""
