package flinkmagic.reuse;

import java.lang.ref.WeakReference;
import java.lang.reflect.Array;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.Dependency;
import org.apache.spark.api.python.PythonFunction;
import org.apache.spark.api.python.PythonRDD;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedLambdaVariable;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.expressions.UnsafeMapData;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.execution.BaseSubqueryExec;
import org.apache.spark.sql.execution.CollectMetricsExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.ReusedSubqueryExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.columnar.CachedRDDBuilder;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.collection.BitSet;
import scala.Product;
import scala.Tuple2;
import scala.collection.Iterator;

/**
 * Digests of what physical plans compute: equal in two runs, and in two processes, only if the rows are equal.
 *
 * A digest is made from a plan, operator by operator and argument by argument, with expression ids renamed. Every kind
 * of value that may occur there is named here; a plan that holds anything else, or an expression that Spark calls
 * nondeterministic, has a reason instead of a digest. Catalyst's canonical plan would not do: it leaves the ids of some
 * aggregates as they are, and drops the names of columns, which mapInPandas and applyInPandas pass to the user's code.
 * Files count by path, length and modification time as the DataFrame listed them. Python functions count by a
 * fingerprint that Python computes. Cached relations and RDDs count by the identity of the object.
 *
 * Written for Janino: no lambdas, no type inference, raw collections. Seen on Spark 3.5 and 4.3.
 */
public class PlanKeys {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int MOST_RDDS = 5000;
    private static final String[] READING_RDDS = {
        "HadoopRDD", "NewHadoopRDD", "WholeTextFileRDD", "BinaryFileRDD", "FileScanRDD", "DataSourceRDD", "JDBCRDD"
    };

    /** Objects that were met in this JVM, as long as they live: their number represents their identity. */
    private static final ArrayList MET = new ArrayList();
    private static int met = 0;

    /** What may be an expression's id in the name of a column, or another number of Spark's. */
    private static final Pattern NUMBERED = Pattern.compile("(#|_gen_alias_)(\\d+)(L?)");

    /** What Spark notes about the DataFrame through which a column was named. */
    private static final Pattern DATASET = Pattern.compile("\"__(dataset_id|col_position)\":\\d+,?");

    private final IdentityHashMap plans = new IdentityHashMap();
    private HashMap ids = new HashMap();
    private SparkPlan written = null;
    private final IdentityHashMap places = new IdentityHashMap();
    private final IdentityHashMap listings = new IdentityHashMap();
    private final ArrayList indexes = new ArrayList();
    private final HashMap functions = new HashMap();
    private final LinkedHashMap unknown = new LinkedHashMap();
    private final IdentityHashMap own = new IdentityHashMap();

    /** The result for a plan: a digest, or why there is none. */
    private static class Fact {
        String digest;
        String reason;
        boolean portable = true;
        final LinkedHashSet files = new LinkedHashSet();

        void refuse(String why) {
            if (reason == null) {
                reason = why;
            }
        }

        void merge(Fact part) {
            portable = portable && part.portable;
            files.addAll(part.files);
            if (part.reason != null) {
                refuse(part.reason);
            }
        }
    }

    /** As JSON: digest or reason, whether it means the same in another process, the numbers of its file indexes. */
    public String keyOf(SparkPlan plan) throws Exception {
        Fact fact = factOf(plan);
        Map answer = new LinkedHashMap();
        answer.put(fact.reason == null ? "digest" : "reason", fact.reason == null ? fact.digest : fact.reason);
        answer.put("portable", Boolean.valueOf(fact.portable));
        answer.put("files", new ArrayList(fact.files));
        return JSON.writeValueAsString(answer);
    }

    /** The digests of functions that were met and are not known. */
    public String unknownFunctions() throws Exception {
        return JSON.writeValueAsString(new ArrayList(unknown.keySet()));
    }

    /** What PySpark ships of such a function. */
    public byte[] function(String digest) {
        return (byte[]) unknown.get(digest);
    }

    /** Set the fingerprint of a function, or why it has none. */
    public void know(String digest, String fingerprint, boolean portable, String reason) {
        Fact fact = new Fact();
        fact.digest = fingerprint;
        fact.portable = portable;
        fact.reason = reason;
        functions.put(digest, fact);
        unknown.remove(digest);
        plans.clear();
    }

    /** The rows of a relation are those of its plan: it is a job's own, not a cache of the user's. */
    public void own(InMemoryRelation relation) {
        own.put(relation.cacheBuilder(), null);
    }

    /** The first file of some indexes that is no longer what was listed; empty if all are. */
    public String changedFile(List numbers, Configuration conf) throws Exception {
        for (int i = 0; i < numbers.size(); i++) {
            int number = ((Number) numbers.get(i)).intValue();
            String changed = changedFile((PartitioningAwareFileIndex) indexes.get(number), conf);
            if (changed.length() > 0) {
                return changed;
            }
        }
        return "";
    }

    /** As JSON the files below a path: path, length, modification time; null if there is nothing. */
    public static String listing(String root, Configuration conf) throws Exception {
        Path path = new Path(root);
        org.apache.hadoop.fs.FileSystem files = path.getFileSystem(conf);
        if (!files.exists(path)) {
            return "null";
        }
        ArrayList found = new ArrayList();
        org.apache.hadoop.fs.RemoteIterator all = files.listFiles(path, true);
        while (all.hasNext()) {
            found.add(line((FileStatus) all.next()));
        }
        Collections.sort(found);
        return JSON.writeValueAsString(found);
    }

    private static String line(FileStatus file) {
        return file.getPath() + "|" + file.getLen() + "|" + file.getModificationTime();
    }

    private static String changedFile(PartitioningAwareFileIndex index, Configuration conf) throws Exception {
        HashMap now = new HashMap();
        Iterator files = index.allFiles().iterator();
        while (files.hasNext()) {
            FileStatus file = (FileStatus) files.next();
            Path folder = file.getPath().getParent();
            HashMap there = (HashMap) now.get(folder);
            if (there == null) {
                there = new HashMap();
                now.put(folder, there);
                try {
                    FileStatus[] listed = folder.getFileSystem(conf).listStatus(folder);
                    for (int i = 0; i < listed.length; i++) {
                        there.put(listed[i].getPath().getName(), line(listed[i]));
                    }
                } catch (java.io.FileNotFoundException gone) {
                    return folder.toString();
                }
            }
            if (!line(file).equals(there.get(file.getPath().getName()))) {
                return file.getPath().toString();
            }
        }
        return "";
    }

    private Fact factOf(SparkPlan wrapped) throws Exception {
        SparkPlan plan = standIn(wrapped);
        Fact known = (Fact) plans.get(plan);
        if (known != null) {
            return known;
        }
        HashMap outside = ids;
        SparkPlan outer = written;
        ids = new HashMap();
        written = plan;
        Fact fact = new Fact();
        StringBuilder text = new StringBuilder();
        nameInputs(plan);
        writeArguments(plan, text, fact);
        ids = outside;
        written = outer;
        if (plan instanceof CollectMetricsExec) {
            fact.refuse("it is observed (observe), and metrics are those of a query that ran");
        }
        fact.digest = sha(text.toString().getBytes("UTF-8"));
        plans.put(plan, fact);
        return fact;
    }

    /** What computes the rows of a plan: wrappers, and reads of what is computed elsewhere, do not change them. */
    private static SparkPlan standIn(SparkPlan plan) {
        while (true) {
            if (plan instanceof WholeStageCodegenExec || plan instanceof InputAdapter) {
                plan = (SparkPlan) plan.children().head();
            } else if (plan instanceof AdaptiveSparkPlanExec) {
                plan = ((AdaptiveSparkPlanExec) plan).initialPlan();
            } else if (plan instanceof ReusedSubqueryExec) {
                plan = (SparkPlan) ((ReusedSubqueryExec) plan).child();
            } else if (plan instanceof ReusedExchangeExec
                    && names(plan).equals(names((SparkPlan) ((ReusedExchangeExec) plan).child()))) {
                plan = (SparkPlan) ((ReusedExchangeExec) plan).child();
            } else {
                return plan;
            }
        }
    }

    private static List names(SparkPlan plan) {
        List found = new ArrayList();
        Iterator output = ((QueryPlan) plan).output().iterator();
        while (output.hasNext()) {
            found.add(((Attribute) output.next()).name());
        }
        return found;
    }

    /**
     * Columns are numbered by their place among those of the inputs; any other id is the operator's own, and is
     * numbered by its first use there.
     */
    private void nameInputs(SparkPlan plan) {
        Iterator children = plan.children().iterator();
        int place = 0;
        while (children.hasNext()) {
            place = nameAll(((QueryPlan) children.next()).output().iterator(), place);
        }
        if (plan instanceof InMemoryTableScanExec) {
            nameAll(((InMemoryTableScanExec) plan).relation().output().iterator(), place);
        }
    }

    private int nameAll(Iterator attributes, int place) {
        while (attributes.hasNext()) {
            Long id = Long.valueOf(((Attribute) attributes.next()).exprId().id());
            if (!ids.containsKey(id)) {
                ids.put(id, "in" + place);
            }
            place++;
        }
        return place;
    }

    private String nameOf(ExprId expressionId) {
        Long id = Long.valueOf(expressionId.id());
        String name = (String) ids.get(id);
        if (name == null) {
            name = "own" + ids.size();
            ids.put(id, name);
        }
        return name;
    }

    private void writeArguments(Product product, StringBuilder out, Fact fact) throws Exception {
        out.append(product.getClass().getName()).append('(');
        Iterator arguments = product.productIterator();
        if (product instanceof BaseSubqueryExec || product instanceof NamedLambdaVariable) {
            arguments.next();  // a name that is made up, with a number
        }
        while (arguments.hasNext()) {
            Object argument = arguments.next();
            if (product instanceof NamedExpression && argument instanceof String) {
                argument = withoutIds((String) argument);
            }
            write(argument, out, fact);
            out.append(',');
        }
        if (product instanceof TreeNode && !(product instanceof SparkPlan)) {
            writeAll(((TreeNode) product).otherCopyArgs().iterator(), out, fact);
        }
        out.append(')');
    }

    /**
     * A column's name, with ids replaced by what represents them in the plan. Spark names columns after expressions,
     * such as sum(m#12L), and each run has ids of its own. A name that only looks like that, such as item#1, is the
     * user's and stays.
     */
    private String withoutIds(String name) {
        Matcher numbered = NUMBERED.matcher(name);
        StringBuffer out = new StringBuffer();
        while (numbered.find()) {
            String text = numbered.group();
            if (!numbered.group(1).equals("#")) {
                text = numbered.group(1);
            } else if (name.lastIndexOf('(', numbered.start()) >= 0 && numbered.group(2).length() < 19) {
                Long id = Long.valueOf(numbered.group(2));
                Object place = ids.containsKey(id) ? ids.get(id) : placesIn(written).get(id);
                text = place == null ? text : "#at " + place + numbered.group(3);
            }
            numbered.appendReplacement(out, Matcher.quoteReplacement(text));
        }
        return numbered.appendTail(out).toString();
    }

    /** By id the place of each column of a plan and of all plans below it. */
    private HashMap placesIn(SparkPlan root) {
        HashMap known = (HashMap) places.get(root);
        if (known == null) {
            known = new HashMap();
            places.put(root, known);
            ArrayList open = new ArrayList();
            open.add(root);
            while (!open.isEmpty()) {
                SparkPlan plan = (SparkPlan) open.remove(open.size() - 1);
                Iterator output = ((QueryPlan) plan).output().iterator();
                while (output.hasNext()) {
                    Long id = Long.valueOf(((Attribute) output.next()).exprId().id());
                    if (!known.containsKey(id)) {
                        known.put(id, Integer.valueOf(known.size()));
                    }
                }
                Iterator children = standIn(plan).children().iterator();
                while (children.hasNext()) {
                    open.add(children.next());
                }
            }
        }
        return known;
    }

    private void writeAll(Iterator values, StringBuilder out, Fact fact) throws Exception {
        while (values.hasNext()) {
            write(values.next(), out, fact);
            out.append(',');
        }
    }

    private void write(Object value, StringBuilder out, Fact fact) throws Exception {
        if (value == null) {
            out.append("null");
        } else if (value instanceof SparkPlan) {
            Fact part = factOf((SparkPlan) value);
            fact.merge(part);
            out.append("plan ").append(part.digest);
        } else if (value instanceof Expression && !isDeterministic((Expression) value)) {
            fact.refuse(shortened(((Expression) value).sql()) + " is nondeterministic");
        } else if (value instanceof UTF8String) {
            // Its bytes: as text, invalid parts would all be the same.
            text("utf8", sha(((UTF8String) value).getBytes()), out);
        } else if (isText(value)) {
            text(value.getClass().getName(), value.toString(), out);
        } else if (value instanceof AtomicReference) {
            out.append("variable");
        } else if (value instanceof DataType && !(value instanceof ObjectType)) {
            DataType type = (DataType) value;
            text("type", DATASET.matcher(type.json()).replaceAll("") + type.catalogString(), out);
        } else if (value instanceof Metadata) {
            text("metadata", DATASET.matcher(((Metadata) value).json()).replaceAll(""), out);
        } else if (value instanceof ExprId) {
            out.append('#').append(nameOf((ExprId) value));
        } else if (value instanceof Class) {
            text("class", ((Class) value).getName(), out);
        } else if (!writeData(value, out, fact) && !writeSource(value, out, fact)) {
            writeStructure(value, out, fact);
        }
    }

    /**
     * Spark takes aes_encrypt for deterministic, though it makes up an initialization vector if none is given. A call
     * that gives one is not distinguished: that costs a computation.
     */
    private static boolean isDeterministic(Expression expression) {
        return expression.deterministic() && !(expression instanceof StaticInvoke
            && ((StaticInvoke) expression).functionName().equals("aesEncrypt"));
    }

    private static boolean isText(Object value) {
        return value instanceof String || value instanceof Number
            || value instanceof Boolean || value instanceof Character || value instanceof Enum
            || value instanceof Path || value instanceof java.net.URI
            || value instanceof org.apache.spark.sql.types.Decimal
            || value instanceof org.apache.spark.unsafe.types.CalendarInterval
            || value instanceof org.apache.spark.storage.StorageLevel
            || value.getClass().getName().startsWith("scala.Enumeration$");
    }

    /** Values of rows. */
    private boolean writeData(Object value, StringBuilder out, Fact fact) throws Exception {
        if (value instanceof byte[]) {
            text("bytes", sha((byte[]) value), out);
        } else if (value instanceof UnsafeRow) {
            text("row", sha(((UnsafeRow) value).getBytes()), out);
        } else if (value instanceof GenericInternalRow) {
            write(((GenericInternalRow) value).values(), out, fact);
        } else if (value instanceof UnsafeArrayData) {
            text("array", sha(bytesOf(((UnsafeArrayData) value).getBaseObject(),
                ((UnsafeArrayData) value).getBaseOffset(), ((UnsafeArrayData) value).getSizeInBytes())), out);
        } else if (value instanceof UnsafeMapData) {
            text("map", sha(bytesOf(((UnsafeMapData) value).getBaseObject(),
                ((UnsafeMapData) value).getBaseOffset(), ((UnsafeMapData) value).getSizeInBytes())), out);
        } else if (value instanceof GenericArrayData) {
            write(((GenericArrayData) value).array(), out, fact);
        } else if (value instanceof ArrayBasedMapData) {
            write(((ArrayBasedMapData) value).keyArray(), out, fact);
            write(((ArrayBasedMapData) value).valueArray(), out, fact);
        } else if (value instanceof BitSet) {
            out.append("bits(");
            writeAll(((BitSet) value).iterator(), out, fact);
            out.append(')');
        } else {
            return false;
        }
        return true;
    }

    private static byte[] bytesOf(Object base, long offset, int size) {
        byte[] copy = new byte[size];
        org.apache.spark.unsafe.Platform.copyMemory(
            base, offset, copy, org.apache.spark.unsafe.Platform.BYTE_ARRAY_OFFSET, (long) size);
        return copy;
    }

    /** Where rows come from, and code that is not Spark's. */
    private boolean writeSource(Object value, StringBuilder out, Fact fact) throws Exception {
        if (value instanceof PythonFunction) {
            function((PythonFunction) value, out, fact);
        } else if (value instanceof FileIndex) {
            files((FileIndex) value, out, fact);
        } else if (value instanceof FileFormat) {
            text("format", value.getClass().getName(), out);
        } else if (value instanceof InMemoryRelation) {
            cached(((InMemoryRelation) value).cacheBuilder(), out, fact);
        } else if (value instanceof RDD) {
            rdd((RDD) value, out, fact);
        } else {
            return false;
        }
        return true;
    }

    private void writeStructure(Object value, StringBuilder out, Fact fact) throws Exception {
        String name = value.getClass().getName();
        if (value instanceof scala.collection.Map) {
            entries(((scala.collection.Map) value).iterator(), out, fact);
        } else if (value instanceof scala.collection.Set) {
            elements(((scala.collection.Set) value).iterator(), out, fact);
        } else if (value instanceof scala.collection.Seq) {
            out.append('[');
            writeAll(((scala.collection.Seq) value).iterator(), out, fact);
            out.append(']');
        } else if (value.getClass().isArray()) {
            out.append('[');
            for (int i = 0; i < Array.getLength(value); i++) {
                write(Array.get(value, i), out, fact);
                out.append(',');
            }
            out.append(']');
        } else if (value instanceof Product && (name.startsWith("org.apache.spark.") || name.startsWith("scala."))) {
            writeArguments((Product) value, out, fact);
        } else if (name.endsWith("$") && name.startsWith("org.apache.spark.")) {
            text("object", name, out);
        } else {
            fact.refuse("it holds a " + name + ", which cannot be compared");
        }
    }

    private void entries(Iterator entries, StringBuilder out, Fact fact) throws Exception {
        TreeMap sorted = new TreeMap();
        while (entries.hasNext()) {
            Tuple2 entry = (Tuple2) entries.next();
            StringBuilder key = new StringBuilder();
            StringBuilder held = new StringBuilder();
            write(entry._1(), key, fact);
            write(entry._2(), held, fact);
            sorted.put(key.toString(), held.toString());
        }
        out.append("map").append(sorted.toString().length()).append(sorted.toString());
    }

    private void elements(Iterator elements, StringBuilder out, Fact fact) throws Exception {
        ArrayList sorted = new ArrayList();
        while (elements.hasNext()) {
            StringBuilder element = new StringBuilder();
            write(elements.next(), element, fact);
            sorted.add(element.toString());
        }
        Collections.sort(sorted);
        out.append("set").append(sorted.toString().length()).append(sorted.toString());
    }

    private void function(PythonFunction function, StringBuilder out, Fact fact) throws Exception {
        byte[] command = commandOf(function);
        String digest = sha(command);
        Fact known = (Fact) functions.get(digest);
        if (known == null) {
            unknown.put(digest, command);
            fact.refuse("a Python function is not looked at yet");
            return;
        }
        fact.merge(known);
        text("function", known.digest == null ? "" : known.digest, out);
        text("python", function.pythonVer(), out);
        text("environment", new TreeMap(function.envVars()).toString(), out);
        text("includes", function.pythonIncludes().toString(), out);
        java.util.Iterator broadcasts = function.broadcastVars().iterator();
        while (broadcasts.hasNext()) {
            text("broadcast", String.valueOf(((Broadcast) broadcasts.next()).id()), out);
            fact.portable = false;
        }
    }

    private static byte[] commandOf(PythonFunction function) {
        scala.collection.Seq command = (scala.collection.Seq) (Object) function.command();
        byte[] bytes = new byte[command.size()];
        Iterator each = command.iterator();
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = ((Number) each.next()).byteValue();
        }
        return bytes;
    }

    private void files(FileIndex index, StringBuilder out, Fact fact) throws Exception {
        if (!(index instanceof PartitioningAwareFileIndex)) {
            fact.refuse("the files of a " + index.getClass().getSimpleName() + " are not listed beforehand");
            return;
        }
        Object[] known = (Object[]) listings.get(index);
        if (known == null) {
            ArrayList lines = new ArrayList();
            Iterator all = ((PartitioningAwareFileIndex) index).allFiles().iterator();
            while (all.hasNext()) {
                lines.add(line((FileStatus) all.next()));
            }
            Collections.sort(lines);
            known = new Object[] {Integer.valueOf(indexes.size()), sha(lines.toString().getBytes("UTF-8"))};
            indexes.add(index);
            listings.put(index, known);
        }
        fact.files.add(known[0]);
        text("files", (String) known[1], out);
        out.append(index.rootPaths().toString());
    }

    /** What a cache holds is what plain Spark would also return, as long as it is the same cache. */
    private void cached(CachedRDDBuilder builder, StringBuilder out, Fact fact) throws Exception {
        if (own.containsKey(builder)) {
            Fact part = factOf(builder.cachedPlan());
            fact.merge(part);
            out.append("kept ").append(part.digest);
            return;
        }
        if (!builder.isCachedColumnBuffersLoaded()) {
            fact.merge(factOf(builder.cachedPlan()));
        }
        fact.portable = false;
        text("cache", String.valueOf(identity(builder)), out);
    }

    private void rdd(RDD rdd, StringBuilder out, Fact fact) throws Exception {
        String reading = readingRdd(rdd, fact);
        if (reading != null) {
            fact.refuse("it reads an RDD through a " + reading + ", whose state cannot be seen");
        }
        fact.portable = false;
        text("rdd", rdd.id() + " of " + identity(rdd.sparkContext()), out);
    }

    /** The kind of an RDD in the lineage whose rows may differ when they are computed again; null if there is none. */
    private String readingRdd(RDD rdd, Fact fact) throws Exception {
        IdentityHashMap seen = new IdentityHashMap();
        ArrayList open = new ArrayList();
        open.add(rdd);
        while (!open.isEmpty()) {
            RDD current = (RDD) open.remove(open.size() - 1);
            if (seen.put(current, current) != null || current.getStorageLevel().isValid()) {
                continue;
            }
            for (int i = 0; i < READING_RDDS.length; i++) {
                if (current.getClass().getSimpleName().equals(READING_RDDS[i])) {
                    return READING_RDDS[i];
                }
            }
            if (current instanceof PythonRDD) {
                java.lang.reflect.Field function = PythonRDD.class.getDeclaredField("func");
                function.setAccessible(true);
                function((PythonFunction) function.get(current), new StringBuilder(), fact);
            }
            if (seen.size() > MOST_RDDS) {
                return "very long lineage";
            }
            Iterator dependencies = current.dependencies().iterator();
            while (dependencies.hasNext()) {
                open.add(((Dependency) dependencies.next()).rdd());
            }
        }
        return null;
    }

    private static int identity(Object object) {
        synchronized (MET) {
            for (int i = MET.size() - 1; i >= 0; i--) {
                Object[] entry = (Object[]) MET.get(i);
                Object one = ((WeakReference) entry[0]).get();
                if (one == object) {
                    return ((Integer) entry[1]).intValue();
                }
                if (one == null) {
                    MET.remove(i);
                }
            }
            met++;
            MET.add(new Object[] {new WeakReference(object), Integer.valueOf(met)});
            return met;
        }
    }

    private static void text(String kind, String text, StringBuilder out) {
        out.append(kind).append(' ').append(text.length()).append(':').append(text);
    }

    private static String shortened(String text) {
        return text.length() > 60 ? text.substring(0, 57) + "..." : text;
    }

    private static String sha(byte[] bytes) throws Exception {
        byte[] digest = MessageDigest.getInstance("SHA-256").digest(bytes);
        StringBuilder hex = new StringBuilder();
        for (int i = 0; i < digest.length; i++) {
            hex.append(Character.forDigit((digest[i] >> 4) & 15, 16)).append(Character.forDigit(digest[i] & 15, 16));
        }
        return hex.toString();
    }
}
