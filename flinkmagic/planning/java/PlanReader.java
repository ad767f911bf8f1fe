package flinkmagic.planning;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;

import flinkmagic.jvm.Reflect;
import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.PlanLater;
import org.apache.spark.sql.execution.RDDScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SubqueryExec;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import org.apache.spark.sql.execution.exchange.Exchange;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike;
import org.apache.spark.sql.execution.joins.BroadcastNestedLoopJoinExec;
import scala.Option;
import scala.collection.JavaConverters;

/**
 * Reads the physical plans of one job, each in one call from Python: over the gateway a tree of a hundred nodes costs
 * hundreds of round trips. Structure and text are read; nothing is executed.
 *
 * Nodes are numbered over all plans of the job.
 */
public class PlanReader {
    private static final String PYTHON = "org.apache.spark.sql.execution.python.";

    /** How many columns of a node are spelled out in its text; Spark's own default. */
    private static final int MOST_FIELDS = 25;

    private final ArrayList<SparkPlan> nodes = new ArrayList<SparkPlan>();
    private final IdentityHashMap<SparkPlan, Integer> numbers = new IdentityHashMap<SparkPlan, Integer>();
    private final HashMap<Object, Integer> firstOfKind = new HashMap<Object, Integer>();
    private final IdentityHashMap<Object, String> fingerprints = new IdentityHashMap<Object, String>();
    private final LeafPartitions leaves = new LeafPartitions();
    private ArrayList<Map> records;
    private String scope;

    /**
     * Returns the facts of the nodes that were not read before, as deflated JSON.
     *
     * @param scope only exchanges and subqueries that were read under equal scopes are compared
     */
    public byte[] read(SparkPlan root, String scope) throws Exception {
        this.scope = scope;
        this.records = new ArrayList();
        leaves.prepare(root, scope);
        Integer number = visit(root);
        Map<String, Object> answer = new LinkedHashMap<String, Object>();
        answer.put("root", number);
        answer.put("nodes", records);
        return Reflect.deflated(answer);
    }

    /** The physical operator of a number. */
    public SparkPlan node(int number) {
        return (SparkPlan) nodes.get(number);
    }

    /** The expression ids of all attributes that the operators of a logical plan put out, with commas between them. */
    public static String attributes(LogicalPlan root) {
        LinkedHashSet ids = new LinkedHashSet();
        ArrayList waiting = new ArrayList();
        waiting.add(root);
        while (!waiting.isEmpty()) {
            LogicalPlan plan = (LogicalPlan) waiting.remove(waiting.size() - 1);
            for (Attribute column : JavaConverters.asJavaIterable(plan.output())) {
                ids.add(Long.toString(column.exprId().id()));
            }
            waiting.addAll(JavaConverters.seqAsJavaList(plan.children()));
        }
        return String.join(",", ids);
    }

    private Integer visit(SparkPlan wrapped) throws Exception {
        SparkPlan plan = unwrap(wrapped);
        Integer known = (Integer) numbers.get(plan);
        if (known != null) {
            return known;
        }
        Integer number = Integer.valueOf(nodes.size());
        numbers.put(plan, number);
        nodes.add(plan);
        Map<String, Object> record = new LinkedHashMap<String, Object>();
        records.add(record);
        record.put("number", number);
        record.put("class", plan.getClass().getName());
        record.put("name", plan.nodeName());
        record.put("text", plan.simpleString(MOST_FIELDS));
        record.put("output", outputIds(plan));
        record.put("children", visitAll(plan.children()));
        record.put("subqueries", visitAll(plan.subqueries()));
        SparkPlan inside = inside(plan);
        boolean cached = plan instanceof InMemoryTableScanExec;
        int partitions = -1;
        if (plan.children().isEmpty() && (inside == null || cached)) {
            partitions = leaves.count(plan, scope);
            record.put("partitions", Integer.valueOf(partitions));
            record.put("pruned", Boolean.valueOf(!plan.subqueries().isEmpty()));
        }
        if (inside != null && partitions < 0) {
            String outside = scope;
            scope = cached ? scope + "/cached " + number : scope;  // a cached plan runs as it is
            record.put("inside", visit(inside));
            scope = outside;
        }
        if (cached) {
            InMemoryTableScanExec scan = (InMemoryTableScanExec) plan;
            record.put("selected", SelectedRows.of(scan));
            record.put("cache", Integer.toHexString(System.identityHashCode(scan.relation().cacheBuilder())));
            Option table = scan.relation().cacheBuilder().tableName();
            record.put("table", table.isDefined() ? table.get() : null);
            record.put("columns", scan.relation().schema().fieldNames());
        }
        if (plan instanceof RDDScanExec && ((RDDScanExec) plan).rdd().isCheckpointed()) {
            record.put("cache", "rdd" + ((RDDScanExec) plan).rdd().id());
            record.put("columns", plan.schema().fieldNames());
        }
        if (plan instanceof BroadcastNestedLoopJoinExec) {
            record.put("joinType", ((BroadcastNestedLoopJoinExec) plan).joinType().toString());
        }
        if (plan instanceof ShuffleExchangeLike) {
            record.put("partitioning", plan.outputPartitioning().getClass().getSimpleName());
            record.put("partitions", Integer.valueOf(plan.outputPartitioning().numPartitions()));
        }
        if (plan instanceof Exchange || plan instanceof SubqueryExec) {
            record.put("same", firstEqual(plan, number));
        }
        return number;
    }

    /** The plan behind an operator that is a leaf in Spark's tree. */
    private static SparkPlan inside(SparkPlan plan) {
        if (plan instanceof InMemoryTableScanExec) {
            return (SparkPlan) ((InMemoryTableScanExec) plan).relation().cachedPlan();
        }
        if (plan instanceof AdaptiveSparkPlanExec) {
            return ((AdaptiveSparkPlanExec) plan).initialPlan();
        }
        return PlanNodes.reused(plan);
    }

    /** Wrappers of code generation are no operators. */
    private static SparkPlan unwrap(SparkPlan plan) {
        while (plan instanceof WholeStageCodegenExec || plan instanceof InputAdapter) {
            plan = (SparkPlan) plan.children().head();
        }
        return plan;
    }

    private List visitAll(scala.collection.Seq<SparkPlan> plans) throws Exception {
        List found = new ArrayList();
        for (SparkPlan plan : JavaConverters.asJavaIterable(plans)) {
            if (!(plan instanceof PlanLater)) {  // an initial state that a keyed process function does not have
                found.add(visit(plan));
            }
        }
        return found;
    }

    private static List outputIds(SparkPlan plan) {
        List<Long> found = new ArrayList<Long>();
        for (Attribute column : JavaConverters.asJavaIterable(plan.output())) {
            found.add(Long.valueOf(column.exprId().id()));
        }
        return found;
    }

    /**
     * The number of the first exchange (or subquery) of this job with the same rows, which may be its own.
     *
     * Spark's own test, as its rule ReuseExchangeAndSubquery makes it, takes two scans of one folder for equal even if
     * their DataFrames listed its files at different times; so the listed files are part of the key. So are the names
     * of the columns that Python functions are given: canonical plans have none, but mapInPandas and applyInPandas show
     * them.
     */
    private Integer firstEqual(SparkPlan plan, Integer number) {
        StringBuilder files = new StringBuilder();
        notCanonical(plan, files);
        List key = new ArrayList();
        key.add(scope);
        key.add(files.toString());
        key.add(((QueryPlan) plan).canonicalized());
        Integer first = (Integer) firstOfKind.get(key);
        if (first == null) {
            firstOfKind.put(key, number);
            return number;
        }
        return first;
    }

    private void notCanonical(SparkPlan plan, StringBuilder into) {
        if (plan.getClass().getName().startsWith(PYTHON)) {
            for (SparkPlan input : JavaConverters.asJavaIterable(plan.children())) {
                for (Attribute column : JavaConverters.asJavaIterable(input.output())) {
                    into.append(column.name()).append(',');
                }
            }
        }
        if (plan instanceof FileSourceScanExec) {
            into.append(fingerprint(((FileSourceScanExec) plan).relation().location())).append(';');
        }
        SparkPlan inside = inside(plan);
        if (inside != null) {
            notCanonical(inside, into);
        }
        for (SparkPlan part : PlanNodes.parts(plan)) {
            notCanonical(part, into);
        }
    }

    private String fingerprint(FileIndex index) {
        String known = (String) fingerprints.get(index);
        if (known != null) {
            return known;
        }
        String made = "";
        if (index instanceof PartitioningAwareFileIndex) {
            ArrayList lines = new ArrayList();
            for (FileStatus file : JavaConverters.asJavaIterable(((PartitioningAwareFileIndex) index).allFiles())) {
                lines.add(file.getPath() + "|" + file.getLen() + "|" + file.getModificationTime());
            }
            java.util.Collections.sort(lines);
            made = lines.size() + ":" + lines.hashCode();
        }
        fingerprints.put(index, made);
        return made;
    }
}
