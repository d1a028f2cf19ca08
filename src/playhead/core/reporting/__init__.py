"""Reports on a run: one JSON form, and pages made from it. Recorded text is hostile and stays text in every one."""
