"""Gives access to the driver's JVM: compiles our own classes there, and reads its collections.

The Java sources lie beside the modules that call them, in the package of the concern; only `Reflect`, which all of them
can use, is here.
"""
