"""The manual for browsers: the texts of the tree and a reference, made into pages by Sphinx."""
