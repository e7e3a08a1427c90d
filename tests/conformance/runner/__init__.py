"""Runs recorded cases against tundish and says where they differ."""
