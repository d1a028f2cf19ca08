"""Bad calls made of tool schemas and recorded arguments, and what comes of them. Pure: nothing here calls a tool."""
