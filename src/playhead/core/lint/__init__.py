"""What makes tools hard to call: interfaces, texts that disagree, error texts that do not help."""
