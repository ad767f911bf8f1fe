"""Leaves most of what a session runs on its driver to HotSpot's first compiler, C1.

A third of the processor time of an ordinary notebook goes into the second one, C2, which is busy all the time: a kernel
ends, or waits for its user, before most of that is won back. Half of it is what goes through rows, and is worth it. The
rest plans queries, loads classes and serializes tasks. Six notebooks on two cores (OpenJDK 17, Spark 4.3.0) spent 480 s
of C2 together: 75 s on generated code, 57 s on Java's serialization, 21 s on finding classes, 17 s on our own classes,
15 s on py4j, 14 s on the classes of lambdas, 12 s on trees of plans, 10 s on ANTLR. Without these C2 takes 16 to 30 %
less, the JVM 4 to 16 % less (retail_sql: 162 and 136 s; branch_deliveries: 79 and 70 s). Without what generates code,
and what links method handles, C2 takes another 6 to 11 % less (retail_sql, telecom_churn).

Nothing that goes through rows may stand here: C2 would not even inline it.
"""

from __future__ import annotations

import json
import logging
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from flinkmagic.reuse.java_classes import CLASSES

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOG = logging.getLogger(__name__)

COMPILED_BY_C1 = (
    # Janino, and the reader of class files with which Spark cleans closures.
    "org/codehaus/janino/*.*",
    "org/codehaus/commons/compiler/*.*",
    "org/apache/xbean/*.*",
    # Finding classes, and making those of lambdas.
    "jdk/internal/classfile/*.*",
    "jdk/internal/loader/*.*",
    "jdk/internal/org/objectweb/asm/*.*",
    "java/util/jar/*.*",
    "java/util/zip/ZipFile*.*",
    "java/net/URL*.*",
    "java/lang/ClassLoader.define*",
    "java/lang/ClassValue*.*",
    "java/lang/invoke/AbstractValidatingLambdaMetafactory.*",
    "java/lang/invoke/DirectMethodHandle.make",
    "java/lang/invoke/DirectMethodHandle.*LambdaForm",
    "java/lang/invoke/InnerClassLambdaMetafactory*.*",
    "java/lang/invoke/InvokerBytecodeGenerator*.*",
    "java/lang/invoke/Invokers.callSiteForm",
    "java/lang/invoke/Invokers.linkTo*",
    "java/lang/invoke/Invokers.spreadInvoker",
    "java/lang/invoke/LambdaForm.*",
    "java/lang/invoke/LambdaForm$Name.*",
    "java/lang/invoke/LambdaFormBuffer*.*",
    "java/lang/invoke/LambdaFormEditor*.*",
    "java/lang/invoke/LambdaMetafactory.*",
    "java/lang/invoke/MemberName*.*",
    "java/lang/invoke/MethodHandleNatives*.*",
    "java/lang/invoke/MethodHandles*.*",
    "java/lang/invoke/MethodType*.*",
    "java/lang/invoke/TypeConvertingMethodAdapter*.*",
    "java/security/SecureClassLoader.*",
    "scala/runtime/ClassValueCompat*.*",
    "sun/util/locale/BaseLocale*.*",
    "sun/invoke/util/*.*",
    # Tasks and closures.
    "java/io/ClassCache*.*",
    "java/io/ObjectInputStream*.*",
    "java/io/ObjectOutputStream*.*",
    "java/io/ObjectStream*.*",
    "scala/collection/generic/DefaultSerializationProxy*.*",
    "scala/runtime/LambdaDeserialize*.*",
    # Calls from Python.
    "py4j/*.*",
    # Plans.
    "flinkmagic/capturing/*.*",
    "flinkmagic/planning/*.*",
    "flinkmagic/reuse/*.*",
    "org/antlr/*.*",
    "scala/reflect/*.*",
    "com/fasterxml/jackson/databind/*.*",
    "org/apache/spark/sql/catalyst/analysis/*.*",
    "org/apache/spark/sql/catalyst/optimizer/*.*",
    "org/apache/spark/sql/catalyst/parser/*.*",
    "org/apache/spark/sql/catalyst/planning/*.*",
    "org/apache/spark/sql/catalyst/plans/*.*",
    "org/apache/spark/sql/catalyst/rules/*.*",
    "org/apache/spark/sql/catalyst/trees/*.*",
    "org/apache/spark/sql/catalyst/expressions/*.*enCode*",
    "org/apache/spark/sql/catalyst/expressions/*.canonicalized",
    "org/apache/spark/sql/catalyst/expressions/*.mapChildren",
    "org/apache/spark/sql/catalyst/expressions/AliasHelper.*",
    "org/apache/spark/sql/catalyst/expressions/Attribute*.*",
    "org/apache/spark/sql/catalyst/expressions/ExpressionSet*.*",
    "org/apache/spark/sql/catalyst/expressions/codegen/Block*.*",
    "org/apache/spark/sql/catalyst/expressions/codegen/Code*.*",
    "org/apache/spark/sql/types/DataType.json",
    "org/apache/spark/sql/types/Metadata*.*",
    "org/json4s/*.*",
    # Configurations, and what the scheduler does with stages.
    "org/apache/hadoop/conf/*.*",
    "org/apache/hadoop/shaded/com/ctc/*.*",
    "org/apache/spark/scheduler/*.*",
    "org/apache/spark/util/SizeEstimator*.*",
    "org/apache/spark/util/Utils$.*getCallSite*",
)
"""Methods, as the patterns of directives name them: a star stands at an end of a class, for packages below it too."""


def leave_to_c1(sc: SparkContext) -> None:
    """Have those methods compiled by C1 only, for the life of a JVM.

    The directives (JEP 165) are those that ``jcmd PID Compiler.directives_print`` prints then.

    Raises
    ------
    DriverClassesRefusedError
        If this JVM does not let us compile.
    OSError
        If there is no place for a temporary file.
    """
    with tempfile.TemporaryDirectory(prefix="flinkmagic-") as folder:
        file = Path(folder) / "directives.json"
        file.write_text(json.dumps([{"match": COMPILED_BY_C1, "c2": {"Exclude": True}}]), encoding="utf-8")
        directives: Any = CLASSES.shared_instance(sc._gateway, "CompilerDirectives")
        try:
            directives.add(str(file))
        except Py4JJavaError as error:  # of a JVM without HotSpot's commands, or that does not take these
            _LOG.debug("the second compiler optimises what the driver does: %s", error)
