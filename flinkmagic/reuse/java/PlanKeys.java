package flinkmagic.reuse;

import java.lang.reflect.Array;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Pattern;

import com.fasterxml.jackson.databind.ObjectMapper;
import flinkmagic.jvm.Reflect;
import org.apache.spark.Dependency;
import org.apache.spark.SparkContext;
import org.apache.spark.api.python.PythonFunction;
import org.apache.spark.api.python.PythonRDD;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedLambdaVariable;
import org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.expressions.UnsafeMapData;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationDef;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.CollectMetrics;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.WithCTE;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.execution.BaseSubqueryExec;
import org.apache.spark.sql.execution.CollectMetricsExec;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.columnar.CachedRDDBuilder;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DatetimeType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.collection.BitSet;
import scala.Product;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.JavaConverters;

/**
 * Digests of what physical plans compute: equal in two runs, and in two processes, only if the rows are equal.
 *
 * A digest is made from a plan, operator by operator and argument by argument, with expression ids renamed. Every kind
 * of value that may occur there is named here; a plan that holds anything else, or an expression that Spark calls
 * nondeterministic, has a reason instead of a digest. Catalyst's canonical plan would not do: it leaves the ids of some
 * aggregates as they are, and drops the names of columns, which mapInPandas and applyInPandas pass to the user's code.
 * Files count as the DataFrame listed them (`FileListings`). Python functions count by a
 * fingerprint that Python computes. Cached relations and RDDs count by the identity of the object, and persisted RDDs
 * also by how often they were unpersisted.
 *
 * Seen on Spark 3.5 and 4.3.
 */
public class PlanKeys {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PersistedRdds PERSISTED = new PersistedRdds();
    private static final int MOST_RDDS = 5000;
    private static final String[] READING_RDDS = {
        "HadoopRDD", "NewHadoopRDD", "WholeTextFileRDD", "BinaryFileRDD", "FileScanRDD", "DataSourceRDD", "JDBCRDD"
    };

    /** Expressions that mean another value in each run. */
    private static final Pattern NOW = Pattern.compile("Current(?!Row)[A-Z]\\w*|Now|LocalTimestamp");

    /** Texts that mean another date or time in each run where they are cast to one. */
    private static final Pattern MOMENT = Pattern.compile("\\s*(?i:epoch|now|today|tomorrow|yesterday)\\b.*", Pattern.DOTALL);

    /** Leaves of queries whose rows can be told; the state of other sources cannot be seen. */
    private static final String[] LEAVES = {
        "CTERelationRef", "EmptyRelation", "InMemoryRelation", "LocalRelation", "LogicalRDD", "LogicalRelation",
        "OneRowRelation", "Range"
    };

    /** Aggregates whose values depend on the order of rows: dropDuplicates() takes the first of them. */
    private static final String[] BY_ORDER = {"CollectList", "CollectSet", "First", "Last", "ListAgg"};

    /** Expressions whose values depend on how rows lie in partitions, or on a seed. */
    private static final String[] BY_PLACE = {
        "InputFileBlockLength", "InputFileBlockStart", "InputFileName", "MonotonicallyIncreasingID", "Rand", "Randn",
        "RandStr", "Shuffle", "SparkPartitionID", "Uniform", "Uuid"
    };

    /** What may choose among several rows, each time that it is computed. */
    private static final String[] CHOOSING = {
        "CollectLimitExec", "CollectTailExec", "GlobalLimitExec", "LocalLimitExec", "MaxBy", "MinBy", "Mode",
        "SampleExec", "TakeOrderedAndProjectExec", "WindowExec", "WindowGroupLimitExec"
    };

    /** What draws by a seed. */
    private static final String[] SEEDED = {
        "Rand", "Randn", "RandStr", "Sample", "SampleExec", "Shuffle", "Uniform", "Uuid"
    };

    /** Formats of Spark's own that read nothing but the listed files, and no code or schema from elsewhere. */
    private static final String[] DURABLE_FORMATS = {
        "BinaryFileFormat", "CSVFileFormat", "JsonFileFormat", "OrcFileFormat", "ParquetFileFormat", "TextFileFormat"
    };

    /** Classes of Spark's for functions that read a schema from elsewhere, or code that users bring. */
    private static final Pattern OF_USERS = Pattern.compile("org\\.apache\\.spark\\.sql\\.(avro|hive|protobuf)\\..*");

    /** What Spark notes about the DataFrame through which a column was named. */
    private static final Pattern DATASET = Pattern.compile("\"__(dataset_id|col_position)\":\\d+,?");

    /** By the number of a cache's builder what it was about to hold, and under which settings, when it held nothing yet. */
    private static final ConcurrentHashMap<Integer, String> EMPTY_CACHES = new ConcurrentHashMap<Integer, String>();

    private final IdentityHashMap<QueryPlan, PlanFact> whole = new IdentityHashMap<QueryPlan, PlanFact>();
    private final IdentityHashMap<QueryPlan, PlanFact> open = new IdentityHashMap<QueryPlan, PlanFact>();
    private IdentityHashMap<QueryPlan, PlanFact> plans = whole;
    private ColumnNames columns = null;
    private final IdentityHashMap<QueryPlan, HashMap<Long, Integer>> places =
        new IdentityHashMap<QueryPlan, HashMap<Long, Integer>>();
    private final FileListings listings = new FileListings();
    private final HashMap<String, PlanFact> functions = new HashMap<String, PlanFact>();
    private final LinkedHashMap<String, byte[]> unknown = new LinkedHashMap<String, byte[]>();
    private final IdentityHashMap<CachedRDDBuilder, SparkPlan> own = new IdentityHashMap<CachedRDDBuilder, SparkPlan>();
    private final HashMap<Long, String> definitions = new HashMap<Long, String>();
    private boolean ofQuery = false;
    private boolean ofAnswer = false;

    /** The number of those under which an answer is asked for; null while none is. */
    private Integer settings = null;
    private long settledMs = 0L;

    /** Learns from now on of what is unpersisted in a context. */
    public void follow(SparkContext context) {
        PERSISTED.follow(context);
    }

    /** See `FileListings.changedFile`. */
    public String changedFile(String numbers) throws Exception {
        return listings.changedFile(numbers, PERSISTED.context().hadoopConfiguration());
    }

    /** See `FileListings.listing`. */
    public String listing(String root) throws Exception {
        return FileListings.listing(root, PERSISTED.context().hadoopConfiguration());
    }

    /** The files that the plans have listed. */
    public FileListings listings() {
        return listings;
    }

    /**
     * As JSON: digest or reason, whether it means the same in another process, whether it does also days later, whether
     * Python functions are run, the numbers of its file indexes, that of its settings, and the digests of functions that
     * are not known.
     */
    public String keyOf(SparkPlan plan) throws Exception {
        rules(false, false);
        return answer(factOf(plan), SessionSettings.numberOf(plan.session().sessionState(), PERSISTED.context()));
    }

    /**
     * As JSON: a digest of all that `keyOf` makes its own from but the files, and the numbers of the indexes in the
     * order in which the plan names them; or the reason. Of a plan that has a key.
     */
    public String openKeyOf(SparkPlan plan) throws Exception {
        rules(false, false);
        plans = open;
        try {
            PlanFact fact = factOf(plan);
            Map<String, Object> answer = answer(fact);
            answer.put("reads", fact.reads);
            return JSON.writeValueAsString(answer);
        } finally {
            plans = whole;
        }
    }

    /** As JSON the settings of a number: those of the session, and those of Hadoop. */
    public String settings(int number) throws Exception {
        return JSON.writeValueAsString(SessionSettings.ofNumber(number));
    }

    /** By which rules plans are written; what was written by others does not count. */
    private void rules(boolean ofQuery, boolean ofAnswer) {
        if (ofQuery != this.ofQuery || ofAnswer != this.ofAnswer) {
            whole.clear();
            open.clear();
        }
        this.ofQuery = ofQuery;
        this.ofAnswer = ofAnswer;
    }

    private String answer(PlanFact fact, Integer settings) throws Exception {
        Map<String, Object> answer = answer(fact);
        answer.put("settings", settings);
        return JSON.writeValueAsString(answer);
    }

    private Map<String, Object> answer(PlanFact fact) {
        Map<String, Object> answer = new LinkedHashMap<String, Object>();
        answer.put(fact.reason == null ? "digest" : "reason", fact.reason == null ? fact.digest : fact.reason);
        // Writes that follow from one order are not to be mixed with those that follow from another one. What is read may
        // be: plain Spark may order rows anew for each action.
        answer.put("portable", Boolean.valueOf(fact.portable && (ofAnswer || !fact.byOrder)));
        answer.put("durable", Boolean.valueOf(fact.portable && fact.durable));
        answer.put("python", Boolean.valueOf(fact.runsPython));
        answer.put("fills", Boolean.valueOf(fact.fillsCache));
        answer.put("files", new ArrayList<Integer>(fact.files));
        answer.put("unknown", new ArrayList<String>(unknown.keySet()));
        return answer;
    }

    /**
     * As `keyOf`, of an analysed query, which costs no planning: the same rules say what is equal. Its caches are not
     * looked into: they hold what the query says. Settings count beside it. Deflated, as it names all files.
     */
    public byte[] keyOfQuery(LogicalPlan query) throws Exception {
        rules(true, false);
        PlanFact fact = factOf(query);
        Map<String, Object> answer = answer(fact);
        ArrayList<Map<String, Object>> listed = new ArrayList<Map<String, Object>>();
        for (Integer number : fact.files) {
            listed.add(listings.facts(number.intValue()));
        }
        answer.put("listed", listed);
        return Reflect.deflated(answer);
    }

    /** As `keyOf`, of a part of a query as it is analysed: of what reads files, whether that is cached or not. */
    public String keyOfRead(LogicalPlan part, QueryExecution query) throws Exception {
        rules(true, false);
        return answer(
            factOf(part), SessionSettings.numberOf(query.sparkSession().sessionState(), PERSISTED.context()));
    }

    /**
     * As `keyOf`, of an analysed query whose answer was given, and may be given again: each run of a query is free in
     * what depends on the order of its rows. What the user has cached is part of the query, as for Spark. It also says
     * whether a run of the query fills any of it.
     *
     * @param settledMs when a local file must have been changed at the latest so that its change time tells it from
     *     later changes
     */
    public String keyOfAnswer(QueryExecution query, long settledMs) throws Exception {
        rules(true, true);
        this.settledMs = settledMs;
        LogicalPlan plan = query.analyzed();
        if (!query.sparkSession().sharedState().cacheManager().isEmpty()) {
            // What the query's own execution has looked up may have been let go of.
            plan = query.sparkSession().sessionState().executePlan(plan, CommandExecutionMode.SKIP()).withCachedData();
        }
        PlanFact fact = new PlanFact();
        Object[] listeners = query.sparkSession().listenerManager().listListeners();
        for (Object one : listeners) {
            if (!one.getClass().getName().startsWith("org.apache.spark.")) {
                fact.refuse("a query listener follows what runs");
            }
        }
        if (plan.isStreaming()) {
            fact.refuse("it is a stream");
        }
        settings = SessionSettings.numberOf(query.sparkSession().sessionState(), PERSISTED.context());
        try {
            return answer(fact.reason == null ? factOf(plan) : fact, settings);
        } finally {
            settings = null;
        }
    }

    /**
     * As `keyOf`, of what a cache of the user's is about to hold, or holds, if any process would put the same rows there.
     *
     * @param settledMs as in `keyOfAnswer`
     */
    public String keyOfCache(CachedRDDBuilder builder, SparkSession session, long settledMs) throws Exception {
        rules(true, true);
        this.settledMs = settledMs;
        // The plan's own session is a copy under other settings, none of which affects rows.
        settings = SessionSettings.numberOf(session.sessionState(), PERSISTED.context());
        try {
            PlanFact held = held(builder);
            if (held == null) {
                held = new PlanFact();
                held.refuse("its rows are this cache's own");
            }
            return answer(held, settings);
        } finally {
            settings = null;
        }
    }

    /**
     * How the rows of a plan lie in partitions, and in which order, by the places of its columns. Plans of one query may
     * differ in it.
     *
     * @return a digest; empty if there is none
     */
    public String layoutOf(SparkPlan plan) throws Exception {
        rules(false, false);
        columns = ColumnNames.ofRows(plan, places);
        PlanFact fact = new PlanFact();
        StringBuilder text = new StringBuilder();
        write(plan.outputPartitioning(), text, fact);
        write(plan.outputOrdering(), text, fact);
        columns = null;
        return fact.reason == null ? Digests.sha(text.toString().getBytes("UTF-8")) : "";
    }

    /** What PySpark ships of such a function. */
    public byte[] function(String digest) {
        return (byte[]) unknown.get(digest);
    }

    /** Set the fingerprint of a function, or why it has none. */
    public void know(String digest, String fingerprint, boolean portable, String reason) {
        PlanFact fact = new PlanFact();
        fact.digest = fingerprint;
        fact.portable = portable;
        fact.reason = reason;
        functions.put(digest, fact);
        unknown.remove(digest);
        whole.clear();
        open.clear();
    }

    /** The rows of a relation are those of a plan: it is a job's own, not a cache of the user's. */
    public void own(InMemoryRelation relation, SparkPlan plan) {
        own.put(relation.cacheBuilder(), plan);
    }

    private PlanFact factOf(QueryPlan wrapped) throws Exception {
        QueryPlan plan = ColumnNames.standIn(wrapped);
        PlanFact known = (PlanFact) plans.get(plan);
        if (known != null) {
            return known;
        }
        ColumnNames outer = columns;
        columns = new ColumnNames(plan, places);
        PlanFact fact = new PlanFact();
        StringBuilder text = new StringBuilder();
        writeArguments(plan, text, fact);
        columns = outer;
        if (plan instanceof CollectMetricsExec || plan instanceof CollectMetrics) {
            fact.refuse("it is observed (observe), and metrics are those of a query that ran");
        }
        fact.digest = Digests.sha(text.toString().getBytes("UTF-8"));
        plans.put(plan, fact);
        return fact;
    }

    private void writeArguments(Product product, StringBuilder out, PlanFact fact) throws Exception {
        out.append(product.getClass().getName()).append('(');
        fact.chooses |= isOneOf(product, CHOOSING);
        fact.durable = fact.durable && !OF_USERS.matcher(product.getClass().getName()).matches();
        fact.durable = fact.durable && !(isOneOf(product, SEEDED) && hasDrawnSeed(product));
        if (product instanceof LogicalPlan && writeLogically((LogicalPlan) product, out, fact)) {
            return;
        }
        Iterator arguments = product.productIterator();
        if (product instanceof BaseSubqueryExec || product instanceof NamedLambdaVariable) {
            arguments.next();  // a name that is made up, with a number
        }
        while (arguments.hasNext()) {
            Object argument = arguments.next();
            if (product instanceof NamedExpression && argument instanceof String) {
                argument = columns.withoutIds((String) argument);
            }
            write(argument, out, fact);
            out.append(',');
        }
        if (product instanceof TreeNode && !isPlan(product)) {
            writeAll(((TreeNode) product).otherCopyArgs().iterator(), out, fact);
        }
        if (product instanceof RuntimeReplaceable) {
            write(((RuntimeReplaceable) product).replacement(), out, fact);  // not always an argument
        }
        out.append(')');
    }

    /** Whether a seed is so large that Spark, or PySpark, must have drawn it: no other process draws it again. */
    private static boolean hasDrawnSeed(Product product) {
        Iterator arguments = product.productIterator();
        while (arguments.hasNext()) {
            Object seed = arguments.next();
            seed = seed instanceof scala.Some ? ((scala.Some) seed).get() : seed;
            seed = seed instanceof Literal ? ((Literal) seed).value() : seed;
            if (seed instanceof Long && ((Long) seed).longValue() != ((Long) seed).intValue()) {
                return true;
            }
        }
        return false;
    }

    /** Writes what operators of queries hold that is not to be written as it is; false for all others. */
    private boolean writeLogically(LogicalPlan plan, StringBuilder out, PlanFact fact) throws Exception {
        if (plan.children().isEmpty() && !isOneOf(plan, LEAVES)) {
            fact.refuse("it reads a " + plan.nodeName() + ", whose state cannot be seen");
            return true;
        }
        if (plan instanceof LogicalRelation) {
            LogicalRelation relation = (LogicalRelation) plan;
            if (!(relation.relation() instanceof HadoopFsRelation)) {
                fact.refuse("it reads a " + relation.relation().getClass().getSimpleName() + ", whose state cannot be seen");
                return true;
            }
            // A table's description holds when it was made, and by whom.
            write(relation.relation(), out, fact);
            writeAll(relation.output().iterator(), out, fact);
        } else if (plan instanceof InMemoryRelation) {
            cached(((InMemoryRelation) plan).cacheBuilder(), out, fact);
            writeAll(((QueryPlan) plan).output().iterator(), out, fact);
        } else if (plan instanceof WithCTE) {
            for (CTERelationDef cte : JavaConverters.asJavaIterable(((WithCTE) plan).cteDefs())) {
                PlanFact part = factOf((QueryPlan) cte.child());
                fact.merge(part);
                definitions.put(Long.valueOf(cte.id()), part.digest);
                out.append("defined ").append(part.digest);
            }
            write(((WithCTE) plan).plan(), out, fact);
        } else if (plan instanceof CTERelationRef) {
            Object defined = definitions.get(Long.valueOf(((CTERelationRef) plan).cteId()));
            if (defined == null) {
                fact.refuse("it is defined by recursion");
            }
            out.append("defined ").append(defined);
            writeAll(((QueryPlan) plan).output().iterator(), out, fact);
        } else {
            return false;
        }
        return true;
    }

    private static boolean isOneOf(Object value, String[] names) {
        for (String each : names) {
            if (value.getClass().getSimpleName().equals(each)) {
                return true;
            }
        }
        return false;
    }

    private boolean isPlan(Object value) {
        return value instanceof SparkPlan || ofQuery && value instanceof LogicalPlan;
    }

    private void writeAll(Iterator values, StringBuilder out, PlanFact fact) throws Exception {
        while (values.hasNext()) {
            write(values.next(), out, fact);
            out.append(',');
        }
    }

    private void write(Object value, StringBuilder out, PlanFact fact) throws Exception {
        if (value == null) {
            out.append("null");
        } else if (isPlan(value)) {
            PlanFact part = factOf((QueryPlan) value);
            fact.merge(part);
            out.append("plan ").append(part.digest);
        } else if (value instanceof Expression && isOneOf(value, BY_ORDER)) {
            fact.byOrder = true;
            writeStructure(value, out, fact);
        } else if (value instanceof Expression && !isDeterministic((Expression) value)) {
            fact.refuse(Digests.shortened(((Expression) value).sql()) + " is nondeterministic");
        } else if (value instanceof UTF8String) {
            // Its bytes: as text, invalid parts would all be the same.
            Digests.text("utf8", Digests.sha(((UTF8String) value).getBytes()), out);
        } else if (Digests.isText(value)) {
            Digests.text(value.getClass().getName(), value.toString(), out);
        } else if (value instanceof AtomicReference) {
            out.append("variable");
        } else if (value instanceof DataType && !(value instanceof ObjectType)) {
            DataType type = (DataType) value;
            Digests.text("type", DATASET.matcher(type.json()).replaceAll("") + type.catalogString(), out);
        } else if (value instanceof Metadata) {
            Digests.text("metadata", DATASET.matcher(((Metadata) value).json()).replaceAll(""), out);
        } else if (value instanceof ExprId) {
            out.append('#').append(columns.nameOf((ExprId) value));
        } else if (value instanceof Class) {
            String name = ((Class) value).getName();
            fact.durable = fact.durable && name.matches("(java|scala|org\\.apache\\.spark)\\..*");
            Digests.text("class", name, out);
        } else if (!writeData(value, out, fact) && !writeSource(value, out, fact)) {
            writeStructure(value, out, fact);
        }
    }

    /**
     * Spark takes aes_encrypt for deterministic, though it makes up an initialization vector if none is given. A call
     * that gives one is not distinguished: that costs a computation. What depends on the moment is a literal once a plan
     * is physical, but not before.
     */
    private boolean isDeterministic(Expression expression) throws Exception {
        if (NOW.matcher(expression.getClass().getSimpleName()).matches() || isOfTheMoment(expression)) {
            return false;
        }
        if (expression instanceof StaticInvoke && ((StaticInvoke) expression).functionName().equals("aesEncrypt")) {
            return false;
        }
        if (expression.deterministic() || ofAnswer && isOneOf(expression, BY_PLACE)) {
            return true;
        }
        // Most are what their children are, which are looked at, too.
        return Reflect.method(expression.getClass(), "deterministic").getDeclaringClass() == Expression.class;
    }

    /** Whether an expression casts a text that means the time of the run: the optimizer evaluates it. */
    private static boolean isOfTheMoment(Expression expression) {
        if (!(expression instanceof Cast) || !(expression.dataType() instanceof DatetimeType)) {
            return false;
        }
        Expression text = ((Cast) expression).child();
        if (!text.foldable() || !(text.dataType() instanceof StringType)) {
            return false;
        }
        Object value = text instanceof Literal ? ((Literal) text).value() : "now";
        return value != null && MOMENT.matcher(value.toString()).matches();
    }

    /** Values of rows. */
    private boolean writeData(Object value, StringBuilder out, PlanFact fact) throws Exception {
        if (value instanceof byte[]) {
            Digests.text("bytes", Digests.sha((byte[]) value), out);
        } else if (value instanceof UnsafeRow) {
            Digests.text("row", Digests.sha(((UnsafeRow) value).getBytes()), out);
        } else if (value instanceof GenericInternalRow) {
            write(((GenericInternalRow) value).values(), out, fact);
        } else if (value instanceof UnsafeArrayData) {
            Digests.text("array", Digests.sha(Digests.bytesOf(((UnsafeArrayData) value).getBaseObject(),
                ((UnsafeArrayData) value).getBaseOffset(), ((UnsafeArrayData) value).getSizeInBytes())), out);
        } else if (value instanceof UnsafeMapData) {
            Digests.text("map", Digests.sha(Digests.bytesOf(((UnsafeMapData) value).getBaseObject(),
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

    /** Where rows come from, and code that is not Spark's. */
    private boolean writeSource(Object value, StringBuilder out, PlanFact fact) throws Exception {
        if (value instanceof PythonFunction) {
            function((PythonFunction) value, out, fact);
        } else if (value instanceof FileIndex) {
            files((FileIndex) value, out, fact);
        } else if (value instanceof FileFormat) {
            fact.durable = fact.durable && isOneOf(value, DURABLE_FORMATS);
            Digests.text("format", value.getClass().getName(), out);
        } else if (value instanceof InMemoryRelation) {
            cached(((InMemoryRelation) value).cacheBuilder(), out, fact);
        } else if (value instanceof RDD) {
            rdd((RDD) value, out, fact);
        } else {
            return false;
        }
        return true;
    }

    private void writeStructure(Object value, StringBuilder out, PlanFact fact) throws Exception {
        String name = value.getClass().getName();
        if (value instanceof scala.collection.Map) {
            entries(((scala.collection.Map) value).iterator(), out, fact);
        } else if (value instanceof scala.collection.Set) {
            elements(((scala.collection.Set) value).iterator(), out, fact);
        } else if (value instanceof scala.collection.Seq && LocalRows.areMany((scala.collection.Seq) value)) {
            rows((scala.collection.Seq) value, out, fact);
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
            Digests.text("object", name, out);
        } else {
            fact.refuse("it holds a " + name + ", which cannot be compared");
        }
    }

    /** The rows of a local relation, which stay as they are: a query is looked at several times. */
    private void rows(scala.collection.Seq rows, StringBuilder out, PlanFact fact) throws Exception {
        String name = LocalRows.name(rows);
        String digest = LocalRows.known(name);
        if (digest == null) {
            LocalRows made = new LocalRows();
            StringBuilder text = new StringBuilder();
            PlanFact part = new PlanFact();
            for (Object row : JavaConverters.asJavaIterable(rows)) {
                if (made.isFull()) {
                    break;
                }
                if (row instanceof UnsafeRow) {
                    made.add((UnsafeRow) row);
                } else {
                    write(row, text, part);
                    made.add(text);
                }
            }
            fact.merge(part);
            digest = made.digest();
            if (part.reason == null) {
                LocalRows.know(name, digest);
            }
        }
        fact.portable = fact.portable && digest.length() > 0;
        Digests.text("rows", digest.length() > 0 ? digest : name, out);
    }

    private void entries(Iterator entries, StringBuilder out, PlanFact fact) throws Exception {
        TreeMap<String, String> sorted = new TreeMap<String, String>();
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

    private void elements(Iterator elements, StringBuilder out, PlanFact fact) throws Exception {
        ArrayList<String> sorted = new ArrayList<String>();
        while (elements.hasNext()) {
            StringBuilder element = new StringBuilder();
            write(elements.next(), element, fact);
            sorted.add(element.toString());
        }
        Collections.sort(sorted);
        out.append("set").append(sorted.toString().length()).append(sorted.toString());
    }

    private void function(PythonFunction function, StringBuilder out, PlanFact fact) throws Exception {
        scala.collection.Seq code = (scala.collection.Seq) (Object) function.command();
        fact.runsPython = true;
        byte[] command = (byte[]) code.toArray(scala.reflect.ClassTag$.MODULE$.Byte());
        String digest = Digests.sha(command);
        PlanFact known = (PlanFact) functions.get(digest);
        if (known == null) {
            unknown.put(digest, command);
            fact.refuse("a Python function is not looked at yet");
            return;
        }
        fact.merge(known);
        Digests.text("function", known.digest == null ? "" : known.digest, out);
        Digests.text("python", function.pythonVer(), out);
        Digests.text("environment", new TreeMap<String, String>(function.envVars()).toString(), out);
        Digests.text("includes", function.pythonIncludes().toString(), out);
        for (Object broadcast : function.broadcastVars()) {
            if (!((Broadcast) broadcast).isValid()) {
                fact.refuse("a Python function reads a broadcast variable that was destroyed");
            }
            Digests.text("broadcast", String.valueOf(((Broadcast) broadcast).id()), out);
            fact.portable = false;
        }
    }

    private void files(FileIndex index, StringBuilder out, PlanFact fact) throws Exception {
        if (!(index instanceof PartitioningAwareFileIndex)) {
            fact.refuse("the files of a " + index.getClass().getSimpleName() + " are not listed beforehand");
            return;
        }
        Object[] known = listings.of((PartitioningAwareFileIndex) index);
        fact.files.add((Integer) known[0]);
        if (plans == open) {
            fact.reads.add((Integer) known[0]);
            out.append("files");
            return;
        }
        fact.durable = fact.durable && ((Boolean) known[2]).booleanValue();
        Digests.text("files", (String) known[1], out);
        out.append(index.rootPaths().toString());
    }

    /**
     * What a cache holds is what plain Spark would also return, as long as it is the same cache. For an answer it may be
     * another one that holds the same rows.
     */
    private void cached(CachedRDDBuilder builder, StringBuilder out, PlanFact fact) throws Exception {
        if (own.containsKey(builder)) {
            PlanFact part = factOf((SparkPlan) own.get(builder));
            fact.merge(part);
            out.append("kept ").append(part.digest);
            return;
        }
        boolean isLoaded = builder.isCachedColumnBuffersLoaded();
        PlanFact held = settings == null ? null : held(builder);
        boolean fills = fact.fillsCache || !isLoaded;  // a filled one does not read the caches that it was made of
        if (held != null) {
            fact.merge(held);
            fact.fillsCache = fills;
            Digests.text("cache of", held.digest, out);
            return;
        }
        if (!isLoaded || ofAnswer) {
            fact.merge(factOf(builder.cachedPlan()));
        }
        if (!isLoaded && ofAnswer) {
            fact.refuse("the query fills a cache with rows that are its own");
        }
        fact.fillsCache = fills;
        fact.portable = false;
        Digests.text("cache", String.valueOf(Digests.identity(builder)), out);
    }

    /**
     * What is known of the rows of a cache if any process would put the same into it: its files are what they were before
     * it was filled, and so are the settings; else null. Rows that depend on their order, on partitions or on a seed, or
     * that are some of several, are this cache's own.
     */
    private PlanFact held(CachedRDDBuilder builder) throws Exception {
        PlanFact rows = strictly(builder.cachedPlan());
        Integer number = Integer.valueOf(Digests.identity(builder));
        String now = rows.digest + " under " + settings;
        boolean isSame = rows.reason == null && rows.portable && rows.durable && !rows.chooses && !rows.byOrder;
        if (Reflect.field(CachedRDDBuilder.class, "_cachedColumnBuffers").get(builder) == null) {
            EMPTY_CACHES.put(number, isSame && isSettled(rows) ? now : "");
        } else if (!builder.isCachedColumnBuffersLoaded() && !now.equals(EMPTY_CACHES.get(number))) {
            EMPTY_CACHES.put(number, "");  // what is missing is computed under other settings
        }
        return isSame && now.equals(EMPTY_CACHES.get(number)) ? rows : null;
    }

    /** What `keyOf` says of a plan, whatever is asked of the one that reads its rows. */
    private PlanFact strictly(SparkPlan plan) throws Exception {
        IdentityHashMap<QueryPlan, PlanFact> outer = plans;
        boolean isOfQuery = ofQuery;
        boolean isOfAnswer = ofAnswer;
        plans = new IdentityHashMap<QueryPlan, PlanFact>();
        ofQuery = false;
        ofAnswer = false;
        try {
            return factOf(plan);
        } finally {
            plans = outer;
            ofQuery = isOfQuery;
            ofAnswer = isOfAnswer;
        }
    }

    /** Whether a later change of its files surely gives them another change time. */
    private boolean isSettled(PlanFact rows) throws Exception {
        return rows.files.isEmpty() || listings.lastChange(rows.files) < settledMs;
    }

    private void rdd(RDD rdd, StringBuilder out, PlanFact fact) throws Exception {
        StringBuilder kept = new StringBuilder();
        StringBuilder rows = new StringBuilder();
        String reading = readingRdd(rdd, kept, rows, fact);
        if (reading != null) {
            fact.refuse("it reads an RDD through a " + reading + ", whose state cannot be seen");
        }
        fact.portable = false;
        if (rows.length() > 0) {
            Digests.text("rows", Digests.sha(rows.toString().getBytes("UTF-8")), out);
        } else {
            Digests.text("rdd", rdd.id() + " of " + Digests.identity(rdd.sparkContext()) + kept, out);
        }
    }

    /**
     * The kind of an RDD in the lineage whose rows may differ when they are computed again; null if there is none. If
     * the driver's own rows are all that it is made from, `rows` describes them and what is made of them.
     */
    private String readingRdd(RDD rdd, StringBuilder kept, StringBuilder rows, PlanFact fact) throws Exception {
        boolean isLocal = true;
        IdentityHashMap<RDD, RDD> seen = new IdentityHashMap<RDD, RDD>();
        ArrayList<RDD> open = new ArrayList<RDD>();
        open.add(rdd);
        while (!open.isEmpty()) {
            RDD current = (RDD) open.remove(open.size() - 1);
            if (seen.put(current, current) != null) {
                continue;
            }
            if (current.getStorageLevel().isValid()) {
                String counted = PERSISTED.rowsOf(current.id());
                if (counted == null) {
                    return "persisted RDD that may have been unpersisted";
                }
                kept.append(", ").append(counted);
                isLocal = false;
                continue;
            }
            for (String each : READING_RDDS) {
                if (current.getClass().getSimpleName().equals(each)) {
                    return each;
                }
            }
            if (current instanceof PythonRDD) {
                function((PythonFunction) Reflect.field(PythonRDD.class, "func").get(current), rows, fact);
            } else if (isLocal) {
                isLocal = LocalRows.describe(current, rows);
            }
            if (seen.size() > MOST_RDDS) {
                return "very long lineage";
            }
            for (Object dependency : JavaConverters.asJavaIterable(current.dependencies())) {
                open.add(((Dependency) dependency).rdd());
            }
        }
        if (!isLocal) {
            rows.setLength(0);
        }
        return null;
    }
}
