"""Whether what a query runs may have effects, or may read what the driver's own files hold.

A pending write whose functions are all known to be pure can wait for the end of the cell. Functions that are not may
read anything past Spark: a file, an accumulator, a service. Spark's own operators are pure in this sense.
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
    """The code that a plan or a lineage runs and that is not Spark's.

    Attributes
    ----------
    pickled : tuple of bytes
        Python functions, as PySpark ships them.
    opaque : str, optional
        Code of which nothing can be known.
    broadcasts : frozenset of int
        The ids of the broadcast variables that the Python functions use.
    """

    pickled: tuple[bytes, ...]
    opaque: str | None
    broadcasts: frozenset[int] = frozenset()

    def impure_reason(self) -> str | None:
        """Why it is not known to be pure; None where it is."""
        if self.opaque is not None:
            return f"it runs {self.opaque}"
        return next(filter(None, map(impurity, self.pickled)), None)

    def impure(self) -> frozenset[str]:
        """What of it is not known to be pure, so that it can be compared with that of others."""
        digests = (hashlib.sha256(one).hexdigest() for one in self.pickled if impurity(one) is not None)
        return frozenset(digests if self.opaque is None else (self.opaque, *digests))

    def may_accumulate(self) -> bool:
        """Whether it may add to an accumulator."""
        return self.opaque is not None or any(map(_accumulates, self.pickled))


def _accumulates(pickled: bytes) -> bool:
    # What is too long for a command comes as a broadcast variable, in a pickle that holds nothing else.
    is_elsewhere = b"_from_id" in pickled and b"cloudpickle" not in pickled
    return b"_deserialize_accumulator" in pickled or is_elsewhere


def functions_of(jplan: JavaObject) -> Functions:
    """The functions of an analysed plan, of a command, and of the RDDs under it."""
    return _functions(_finder().ofPlan(jplan))


def functions_of_rdd(jrdd: JavaObject) -> Functions:
    """The functions of the lineage of an ``RDD`` of the JVM's."""
    return _functions(_finder().ofRdd(jrdd))


def impure_reason(jplan: JavaObject) -> str | None:
    """Why what an analysed plan, or a command, runs is not known to be pure; None where it is."""
    return functions_of(jplan).impure_reason()


def impure_function(function: Callable[..., Any]) -> str | None:
    """Why a function of the user's is not known to be pure; None where it is."""
    try:
        pickled = CloudPickleSerializer().dumps(function)
    except PicklingError as error:
        return str(error)
    finally:
        # Pickled broadcast variables enlist for the command that PySpark is about to ship, which this is not.
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
