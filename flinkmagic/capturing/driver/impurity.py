"""Finds code in queries that may have effects, or may read the driver's own files.

A pending write can wait for the end of the cell if all its functions are known to be pure. Other functions may read
anything outside Spark: a file, an accumulator, a service. Spark's own operators are pure in this sense.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from pickle import PicklingError
from typing import TYPE_CHECKING, Any

from pyspark import SparkContext
from pyspark.serializers import CloudPickleSerializer

from flinkmagic.capturing.driver.capture_reader import as_json
from flinkmagic.capturing.driver.java_classes import CLASSES
from flinkmagic.functions.purity import impurity

if TYPE_CHECKING:
    from collections.abc import Callable

    from py4j.java_gateway import JavaObject


@dataclass(frozen=True)
class Functions:
    """The code in a plan or a lineage that is not Spark's."""

    pickled: tuple[bytes, ...]
    """Python functions, as PySpark ships them."""
    opaque: str | None
    """Code of which nothing can be known; None if there is none."""
    broadcasts: frozenset[int] = frozenset()
    """The ids of the broadcast variables that the Python functions use."""

    def impure_reason(self) -> str | None:
        """Return why the code is not known to be pure; None if it is."""
        if self.opaque is not None:
            return f"it runs {self.opaque}"
        return next(filter(None, map(impurity, self.pickled)), None)

    def impure(self) -> frozenset[str]:
        """Return the parts that are not known to be pure, in a form that can be compared with that of other code."""
        digests = (hashlib.sha256(one).hexdigest() for one in self.pickled if impurity(one) is not None)
        return frozenset(digests if self.opaque is None else (self.opaque, *digests))

    def may_accumulate(self) -> bool:
        """Return whether the code may add to an accumulator."""
        return self.opaque is not None or any(map(_accumulates, self.pickled))


def _accumulates(pickled: bytes) -> bool:
    # A command that is too long comes as a broadcast variable, in a pickle that holds nothing else.
    is_elsewhere = b"_from_id" in pickled and b"cloudpickle" not in pickled
    return b"_deserialize_accumulator" in pickled or is_elsewhere


def functions_of(jplan: JavaObject) -> Functions:
    """Return the functions of an analysed plan or command, and of the RDDs below it."""
    return _functions(_finder().ofPlan(jplan))


def functions_of_rdd(jrdd: JavaObject) -> Functions:
    """Return the functions in the lineage of a Java ``RDD``."""
    return _functions(_finder().ofRdd(jrdd))


def impure_reason(jplan: JavaObject) -> str | None:
    """Return why the code of an analysed plan or command is not known to be pure; None if it is."""
    return functions_of(jplan).impure_reason()


def impure_function(function: Callable[..., Any]) -> str | None:
    """Return why a function of the user's is not known to be pure; None if it is."""
    try:
        pickled = CloudPickleSerializer().dumps(function)
    except PicklingError as error:
        return str(error)
    finally:
        # Pickled broadcast variables register with the command that PySpark is about to ship; this is not that command.
        context = SparkContext._active_spark_context
        if context is not None:
            context._pickled_broadcast_vars.clear()
    return impurity(pickled)


def _functions(deflated: bytes) -> Functions:
    facts = as_json(deflated)
    pickled = tuple(map(base64.b64decode, facts["functions"]))
    return Functions(pickled, facts["opaque"], frozenset(facts["broadcasts"]))


def _finder() -> Any:
    return CLASSES.shared_instance(SparkContext._gateway, "PlanFunctions")
