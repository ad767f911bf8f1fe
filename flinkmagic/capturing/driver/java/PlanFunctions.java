package flinkmagic.capturing.driver;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.Map;

import flinkmagic.jvm.Reflect;
import org.apache.spark.Dependency;
import org.apache.spark.api.python.PythonFunction;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import scala.Product;
import scala.collection.Iterator;
import scala.collection.JavaConverters;

/**
 * Finds the code in a plan, or in the lineage of an RDD, that is not Spark's: Python functions, as PySpark pickled
 * them, and the first function of which nothing can be known. Executes nothing.
 *
 * Spark's own closures hold what they were given in fields: those are followed through closures and the operators that
 * run Python.
 */
public class PlanFunctions {
    private static final int MOST_RDDS = 5000;

    /** Packages whose functions are known: they do what Spark's operators and its machine learning do. */
    private static final String[] KNOWN = {"org.apache.spark.", "scala.", "java.", "jdk.", "sun.", "flinkmagic."};

    /** What marks a class as a function. */
    private static final String[] FUNCTIONS = {
        "scala.Function", "scala.PartialFunction", "java.util.function.", "org.apache.spark.api.java.function.",
        "org.apache.spark.sql.api.java.UDF", "org.apache.spark.sql.expressions.Aggregator",
        "org.apache.spark.sql.expressions.UserDefinedAggregateFunction",
        "org.apache.spark.sql.connector.catalog.functions.BoundFunction",
        "org.apache.hadoop.hive.ql.exec.UDF", "org.apache.hadoop.hive.ql.udf.generic.GenericUDF",
    };

    /** Spark's objects that hold functions in fields but are not closures: how their names begin. */
    private static final String[] HOLDERS = {
        "org.apache.spark.sql.execution.python.", "org.apache.spark.api.python.",
        "org.apache.spark.sql.hive.Hive", "org.apache.spark.sql.hive.HiveShim$HiveFunctionWrapper",
    };

    private final ArrayList<byte[]> commands = new ArrayList<byte[]>();
    private final ArrayList<Long> broadcasts = new ArrayList<Long>();
    private final IdentityHashMap<Object, Object> seen = new IdentityHashMap<Object, Object>();
    private String opaque;

    /**
     * For an analysed plan, as deflated JSON: `functions`, in base64, the ids of the `broadcasts` that they use, and
     * `opaque`, a function that cannot be seen.
     */
    public byte[] ofPlan(LogicalPlan plan) throws Exception {
        PlanFunctions found = new PlanFunctions();
        found.walk(plan);
        for (Object subquery : JavaConverters.asJavaIterable(((QueryPlan) plan).subqueriesAll())) {
            found.walk(subquery);
        }
        return found.answer();
    }

    /** The same for the lineage of an RDD. */
    public byte[] ofRdd(RDD rdd) throws Exception {
        PlanFunctions found = new PlanFunctions();
        found.lineage(rdd);
        return found.answer();
    }

    private byte[] answer() throws Exception {
        Map<String, Object> facts = new LinkedHashMap<String, Object>();
        facts.put("functions", commands);
        facts.put("opaque", opaque);
        facts.put("broadcasts", broadcasts);
        return Reflect.deflated(facts);
    }

    private void refuse(String what) {
        if (opaque == null) {
            opaque = what;
        }
    }

    private void walk(Object first) throws Exception {
        ArrayDeque open = new ArrayDeque();
        open.add(first);
        while (!open.isEmpty()) {
            Object value = open.poll();
            if (seen.put(value, value) == null) {
                visit(value, open);
            }
        }
    }

    private void visit(Object value, ArrayDeque open) throws Exception {
        String name = value.getClass().getName();
        if (value instanceof PythonFunction) {
            scala.collection.Seq command = (scala.collection.Seq) (Object) ((PythonFunction) value).command();
            commands.add((byte[]) command.toArray(scala.reflect.ClassTag$.MODULE$.Byte()));
            for (Object used : ((PythonFunction) value).broadcastVars()) {
                broadcasts.add(Long.valueOf(((Broadcast) used).id()));
            }
        } else if (value instanceof RDD) {
            lineage((RDD) value);
        } else if (isUnseen(value, name)) {
            refuse(described(value, name));
        } else if (value instanceof InMemoryRelation) {
            if (!((InMemoryRelation) value).cacheBuilder().isCachedColumnBuffersLoaded()) {
                open.add(((InMemoryRelation) value).cacheBuilder().cachedPlan());
            }
        } else if (value instanceof LogicalRDD) {
            lineage(((LogicalRDD) value).rdd());
        } else if (name.endsWith(".LocalRelation") || name.endsWith(".LocalTableScanExec")) {
            return;  // rows
        } else if (value instanceof scala.collection.Iterable) {
            addAll(((scala.collection.Iterable) value).iterator(), open);
        } else if (value instanceof Object[]) {
            for (Object each : (Object[]) value) {
                add(each, open);
            }
        } else if (isClosure(name) || startsWithAny(name, HOLDERS)) {
            for (Object each : held(value, null)) {
                add(each, open);
            }
        } else if (value instanceof Product) {
            addAll(((Product) value).productIterator(), open);
        }
    }

    /** Code that is neither Python's nor Spark's own. */
    private static boolean isUnseen(Object value, String name) {
        if (name.endsWith(".CallMethodViaReflection") || name.contains(".ScriptTransformation")
                || name.endsWith(".python.PythonTable") || name.endsWith(".python.PythonDataSourceV2")) {
            return true;
        }
        return !startsWithAny(name, KNOWN) && !name.startsWith("org.apache.hadoop.hive.ql.udf.")
            && (value instanceof Expression || value instanceof QueryPlan || isFunction(value.getClass()));
    }

    private static String described(Object value, String name) {
        String simple = name.substring(name.lastIndexOf('.') + 1);
        if (simple.startsWith("ScriptTransformation")) {
            return "a script";
        }
        return simple.startsWith("Python") ? "a data source in Python" : "code of the class " + name;
    }

    private static boolean isFunction(Class type) {
        for (Class one = type; one != null; one = one.getSuperclass()) {
            if (startsWithAny(one.getName(), FUNCTIONS)) {
                return true;
            }
            Class[] interfaces = one.getInterfaces();
            for (Class each : interfaces) {
                if (isFunction(each)) {
                    return true;
                }
            }
        }
        return false;
    }

    private static boolean isClosure(String name) {
        return name.contains("$$Lambda") || name.contains("$anonfun$") || name.contains("$$anon$");
    }

    private static boolean startsWithAny(String name, String[] beginnings) {
        for (String each : beginnings) {
            if (name.startsWith(each)) {
                return true;
            }
        }
        return false;
    }

    private static void add(Object value, ArrayDeque open) {
        if (value != null) {
            open.add(value);
        }
    }

    private static void addAll(Iterator values, ArrayDeque open) {
        while (values.hasNext()) {
            add(values.next(), open);
        }
    }

    /** What the fields of an object hold, without those of a class that it extends, and of Java's. */
    private static ArrayList<Object> held(Object object, Class without) throws Exception {
        ArrayList<Object> found = new ArrayList<Object>();
        Class type = object.getClass();
        for (; type != without && !type.getName().startsWith("java."); type = type.getSuperclass()) {
            found.addAll(Reflect.held(object, type));
        }
        return found;
    }

    private void lineage(RDD first) throws Exception {
        ArrayDeque open = new ArrayDeque();
        open.add(first);
        int count = 0;
        while (!open.isEmpty()) {
            RDD rdd = (RDD) open.poll();
            if (seen.put(rdd, rdd) != null) {
                continue;
            }
            count++;
            if (count > MOST_RDDS || !startsWithAny(rdd.getClass().getName(), KNOWN)) {
                refuse(count > MOST_RDDS ? "a very long lineage" : "an RDD of the class " + rdd.getClass().getName());
                return;
            }
            for (Object dependency : JavaConverters.asJavaIterable(rdd.dependencies())) {
                open.add(((Dependency) dependency).rdd());
            }
            code(rdd);
        }
    }

    /** What an RDD was given to run: fields that hold functions, Python's among them. */
    private void code(RDD rdd) throws Exception {
        for (Object each : held(rdd, RDD.class)) {
            if (each instanceof PythonFunction || (each != null && isFunction(each.getClass())
                    && !(each instanceof scala.collection.Iterable))) {
                walk(each);
            }
        }
    }
}
