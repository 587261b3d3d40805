"""Files that users name: read within limits, and written whole or not at all."""
