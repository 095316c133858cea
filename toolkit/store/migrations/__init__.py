"""Migrations, run by `Store.open`; the newest one's number is the schema's."""
