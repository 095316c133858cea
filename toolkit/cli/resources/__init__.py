"""One module for each resource, each with its group of commands as `app`.

`resource_commands` adds the commands that resources have in common, by the resource's name on the
client. The name of a resource alone runs the first command of its group.
"""
