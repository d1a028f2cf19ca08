"""Changes of the schema, oldest first. Loaded only when a store is older than this playhead."""
