"""What a capture asks of the driver, with the Java that answers it in one call."""
