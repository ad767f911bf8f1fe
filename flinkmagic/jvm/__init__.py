"""The only access to the driver's JVM: our own classes compiled there, and small helpers around py4j."""
