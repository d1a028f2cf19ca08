"""HTTP requests and responses as fixtures hold them: what a request is keyed by, and the stored form of an answer."""
