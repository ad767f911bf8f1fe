package flinkmagic.planning;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.command.ExecutedCommandExec;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanExecBase;
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec;
import org.apache.spark.util.ThreadUtils;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/**
 * How many partitions a leaf of a physical plan reads, without starting a Spark job.
 *
 * A leaf that waits for a subquery (dynamic partition pruning, a pushed-down scalar subquery) cannot be asked: it is
 * counted as if nothing were pruned.
 */
public class LeafPartitions {
    private final IdentityHashMap<Object, HashMap<ArrayList<Object>, Integer>> ofRelations =
        new IdentityHashMap<Object, HashMap<ArrayList<Object>, Integer>>();

    /**
     * The number, or -1 if this is no leaf whose partitions are known before it runs.
     *
     * @param scope the configuration under which the leaf was planned
     */
    public int count(SparkPlan leaf, String scope) throws Exception {
        if (leaf instanceof ExecutedCommandExec || leaf instanceof V2CommandExec) {
            return -1;  // asking would run the command
        }
        if (leaf.getClass().getSimpleName().equals("StreamingRelationExec")) {
            return -1;  // the source of a query that has not started; its package differs between versions
        }
        if (leaf instanceof InMemoryTableScanExec) {
            InMemoryTableScanExec scan = (InMemoryTableScanExec) leaf;
            return scan.relation().cacheBuilder().isCachedColumnBuffersLoaded()
                ? scan.relation().cacheBuilder().cachedColumnBuffers().getNumPartitions() : -1;
        }
        if (leaf instanceof FileSourceScanExec) {
            return ofFiles((FileSourceScanExec) leaf, scope);
        }
        if (leaf instanceof DataSourceV2ScanExecBase) {
            Partitioning partitioning = leaf.outputPartitioning();
            return partitioning instanceof UnknownPartitioning
                ? ((DataSourceV2ScanExecBase) leaf).inputPartitions().size() : partitioning.numPartitions();
        }
        return leaf.subqueries().isEmpty() ? leaf.execute().getNumPartitions() : -1;
    }

    /**
     * Lets the file scans below an operator be asked concurrently: each answer takes some milliseconds, as Spark makes
     * the scan's reader, and broadcasts its Hadoop configuration, before it can say into how many partitions the files
     * are split.
     */
    public void prepare(SparkPlan root, String scope) throws Exception {
        HashMap<ArrayList<Object>, FileSourceScanExec> scans = new HashMap<ArrayList<Object>, FileSourceScanExec>();
        collect(root, scope, scans);
        if (scans.size() < 2) {
            return;
        }
        int threads = Math.min(scans.size(), Runtime.getRuntime().availableProcessors());
        ExecutorService asking = ThreadUtils.newDaemonFixedThreadPool(threads, "flinkmagic-scans");
        for (FileSourceScanExec scan : scans.values()) {
            asking.execute(new Ask(scan));
        }
        asking.shutdown();
        asking.awaitTermination(Long.MAX_VALUE, TimeUnit.NANOSECONDS);
    }

    private void collect(SparkPlan plan, String scope, HashMap<ArrayList<Object>, FileSourceScanExec> scans) {
        if (plan instanceof FileSourceScanExec && plan.subqueries().isEmpty()) {
            FileSourceScanExec scan = (FileSourceScanExec) plan;
            ArrayList<Object> key = key(scan, scan, scope);
            if (!counts(scan).containsKey(key)) {
                key.add(Integer.valueOf(System.identityHashCode(scan.relation())));
                scans.put(key, scan);
            }
        }
        for (SparkPlan child : JavaConverters.asJavaIterable(plan.children())) {
            collect(child, scope, scans);
        }
    }

    /** Asks a scan, which remembers its answer. */
    static class Ask implements Runnable {
        private final FileSourceScanExec scan;

        Ask(FileSourceScanExec scan) {
            this.scan = scan;
        }

        @Override
        public void run() {
            try {
                scan.inputRDD();
            } catch (Throwable failed) {
                return;  // it will say so once more to the code that counts
            }
        }
    }

    /** Counted once for each relation and partition filter. */
    private int ofFiles(FileSourceScanExec scan, String scope) throws Exception {
        FileSourceScanExec unpruned = unpruned(scan);
        HashMap<ArrayList<Object>, Integer> counts = counts(scan);
        ArrayList<Object> key = key(scan, unpruned, scope);
        Integer known = (Integer) counts.get(key);
        if (known == null) {
            known = Integer.valueOf(unpruned.inputRDD().getNumPartitions());
            counts.put(key, known);
        }
        return known.intValue();
    }

    private HashMap<ArrayList<Object>, Integer> counts(FileSourceScanExec scan) {
        HashMap<ArrayList<Object>, Integer> counts =
            (HashMap<ArrayList<Object>, Integer>) ofRelations.get(scan.relation());
        if (counts == null) {
            counts = new HashMap<ArrayList<Object>, Integer>();
            ofRelations.put(scan.relation(), counts);
        }
        return counts;
    }

    private static ArrayList<Object> key(FileSourceScanExec scan, FileSourceScanExec unpruned, String scope) {
        ArrayList<Object> key = new ArrayList<Object>();
        key.add(scope);
        key.add(unpruned.partitionFilters().toString());
        key.add(scan.optionalBucketSet());
        key.add(scan.optionalNumCoalescedBuckets());
        key.add(Boolean.valueOf(scan.bucketedScan()));
        // Filters on a file's metadata (its path, its time) select files.
        key.add(scan.fileConstantMetadataColumns().isEmpty() ? "" : unpruned.dataFilters().toString());
        return key;
    }

    private static FileSourceScanExec unpruned(FileSourceScanExec scan) {
        if (scan.subqueries().isEmpty()) {
            return scan;
        }
        Object[] arguments = new Object[scan.productArity()];
        for (int i = 0; i < arguments.length; i++) {
            Object argument = scan.productElement(i);
            arguments[i] = argument == scan.partitionFilters() || argument == scan.dataFilters()
                ? withoutSubqueries((Seq) argument) : argument;
        }
        return (FileSourceScanExec) scan.makeCopy(arguments);
    }

    private static Seq withoutSubqueries(Seq<Expression> filters) {
        ArrayList<Expression> kept = new ArrayList<Expression>();
        for (Expression filter : JavaConverters.asJavaIterable(filters)) {
            if (!filter.containsPattern(TreePattern.PLAN_EXPRESSION())) {
                kept.add(filter);
            }
        }
        return PlanNodes.vector(kept);
    }
}
