"""The flags of each command, as dataclasses that tyro reads; quick to import."""
