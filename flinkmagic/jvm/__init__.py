"""The one door to the driver's JVM: classes of our own compiled there, and small helpers around py4j."""
