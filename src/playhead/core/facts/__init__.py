"""Named facts that an answer must state, and how people write dates and numbers."""
