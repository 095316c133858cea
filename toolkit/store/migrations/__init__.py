"""Migrations, run by `Store.open`; the number of the newest migration is the schema's."""
