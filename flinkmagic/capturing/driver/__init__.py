"""What a capture asks the driver, and the Java that answers each question in one call."""
