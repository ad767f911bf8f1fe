package flinkmagic.planning;

import java.util.ArrayList;
import java.util.IdentityHashMap;

import org.apache.spark.MapOutputStatistics;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.execution.CoalesceExec;
import org.apache.spark.sql.execution.CoalescedPartitionSpec;
import org.apache.spark.sql.execution.ShufflePartitionSpec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.UnionExec;
import org.apache.spark.sql.execution.exchange.BroadcastExchangeLike;
import org.apache.spark.sql.execution.exchange.ENSURE_REQUIREMENTS$;
import org.apache.spark.sql.execution.exchange.Exchange;
import org.apache.spark.sql.execution.exchange.REPARTITION_BY_COL$;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike;
import org.apache.spark.sql.execution.exchange.ShuffleOrigin;
import org.apache.spark.sql.execution.joins.BroadcastNestedLoopJoinExec;
import org.apache.spark.sql.execution.joins.CartesianProductExec;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import scala.Option;
import scala.collection.JavaConverters;

/**
 * Lets one task read several partitions of the shuffles below a stage if these turned out small.
 *
 * The rules are those of Spark's `CoalesceShufflePartitions`, with its smallest partition size as the target:
 * neighbours are merged, in the same way for all shuffles of a stage, and no shuffle is merged if the user gave its
 * number of partitions. A stage that reads anything but shuffles (and broadcasts, and kept rows) stays as it is, and so
 * does one whose operators have another number of partitions than their inputs.
 *
 * Rows that are kept are read as if they were the shuffles that they were made of, whose sizes are noted with them: in
 * Spark's own plan the stage that keeps them and the one that reads them are one. It shows: a sum of doubles is rounded
 * otherwise if its rows are added up in other groups.
 *
 * The last stage of a write has as many tasks as Spark's own rule would leave of its many small partitions, if there
 * are that many here: each task makes a file.
 */
public class CoalescedReads {
    /** Set on the session that plans a job: whether partitions may be merged. */
    public static final String ENABLED = "flinkmagic.planning.coalesce";

    private final IdentityHashMap<SparkPlan, MapOutputStatistics> statistics = new IdentityHashMap<SparkPlan, MapOutputStatistics>();
    private final IdentityHashMap<SparkPlan, ShufflePartitionSpec[]> specs = new IdentityHashMap<SparkPlan, ShufflePartitionSpec[]>();
    private final IdentityHashMap<SparkPlan, Integer> tasks = new IdentityHashMap<SparkPlan, Integer>();

    /** On the plan of kept rows: the bytes of each partition of the shuffles that they were made of. */
    private static final TreeNodeTag SIZES = new TreeNodeTag("flinkmagic.sizes");

    /** A shuffle is written. */
    public void written(Exchange exchange, MapOutputStatistics written) {
        statistics.put(exchange, written);
    }

    /** Whether a stage with this plan may read merged partitions at all. */
    public static boolean isEnabled(SparkPlan top) {
        return "true".equals(top.conf().getConfString(ENABLED, "false"));
    }

    /**
     * Decides for a stage that is about to be made.
     *
     * @param top the planned operator on top of the stage
     * @param leaves its planned exchanges, without broadcasts, and scans of kept rows
     * @param made the exchanges that are run for them; for kept rows the plan of these
     * @param isWrite whether the stage is the last one of a write
     */
    public void decide(SparkPlan top, ArrayList<SparkPlan> leaves, ArrayList<SparkPlan> made, boolean isWrite) {
        tasks.remove(top);
        for (SparkPlan leaf : leaves) {
            specs.remove(leaf);
        }
        long[] sizes = sizes(made);
        if (sizes == null) {
            return;
        }
        ShufflePartitionSpec[] merged = isWrite
            ? forTasks(files(sizes, top.conf()), sizes) : upTo(smallest(top.conf()), sizes);
        if (merged.length < sizes.length) {
            tasks.put(top, Integer.valueOf(merged.length));
            for (SparkPlan leaf : leaves) {
                specs.put(leaf, merged);
            }
        }
    }

    /** Notes on the plan of rows that are to be kept what they are made of. */
    public void noteSizes(SparkPlan kept, ArrayList<SparkPlan> made) {
        long[] sizes = sizes(made);
        if (sizes != null) {
            kept.setTagValue(SIZES, sizes);
        }
    }

    /** By partition, the bytes of some inputs together; null if these are not known, or may not be merged. */
    private long[] sizes(ArrayList<SparkPlan> made) {
        long[] sizes = null;
        for (SparkPlan each : made) {
            long[] own = sizesOf(each);
            if (own == null || (sizes != null && sizes.length != own.length)) {
                return null;
            }
            if (sizes == null) {
                sizes = new long[own.length];
            }
            for (int j = 0; j < sizes.length; j++) {
                sizes[j] += own[j];
            }
        }
        return sizes;
    }

    private long[] sizesOf(SparkPlan made) {
        Option noted = made.getTagValue(SIZES);
        if (noted.isDefined()) {
            return (long[]) noted.get();
        }
        MapOutputStatistics written = (MapOutputStatistics) statistics.get(made);
        return written == null || !mayMerge((ShuffleExchangeLike) made) ? null : written.bytesByPartitionId();
    }

    private static long smallest(SQLConf conf) {
        return ((Long) conf.getConf(SQLConf$.MODULE$.COALESCE_PARTITIONS_MIN_PARTITION_SIZE())).longValue();
    }

    /** How many partitions `ShufflePartitionsUtil.coalescePartitions` leaves of very many small ones. */
    private static int files(long[] sizes, SQLConf conf) {
        long bytes = 0L;
        for (long each : sizes) {
            bytes += each;
        }
        Option least = (Option) conf.getConf(SQLConf$.MODULE$.COALESCE_PARTITIONS_MIN_PARTITION_NUM());
        boolean isParallel = ((Boolean) conf.getConf(
            SQLConf$.MODULE$.COALESCE_PARTITIONS_PARALLELISM_FIRST())).booleanValue();
        int number = least.isDefined() ? ((Integer) least.get()).intValue()
            : isParallel ? SparkContext.getOrCreate().defaultParallelism() : 1;
        long advised = ((Long) conf.getConf(SQLConf$.MODULE$.ADVISORY_PARTITION_SIZE_IN_BYTES())).longValue();
        long share = (bytes + number - 1) / Math.max(1, number);
        long target = Math.max(1L, Math.max(smallest(conf), Math.min(share, advised)));
        long full = bytes / target;
        long files = bytes - full * target >= smallest(conf) ? full + 1 : full;  // a smaller rest goes to its neighbour
        return (int) Math.max(1L, Math.min((long) sizes.length, files));
    }

    /** The partitions of a planned exchange that each task reads; null if it is read as it was written. */
    public ShufflePartitionSpec[] of(SparkPlan leaf) {
        return (ShufflePartitionSpec[]) specs.get(leaf);
    }

    /** How many tasks a stage has; -1 if nothing is merged. */
    public int tasks(SparkPlan top) {
        Integer number = (Integer) tasks.get(top);
        return number == null ? -1 : number.intValue();
    }

    /**
     * Adds the exchanges and the scans of kept rows that a stage reads to `leaves`, except broadcasts.
     *
     * @return whether partitions below this operator may be merged
     */
    public static boolean collect(SparkPlan plan, IdentityHashMap hidden, ArrayList<SparkPlan> leaves) {
        if (plan instanceof BroadcastExchangeLike || PlanNodes.reused(plan) instanceof BroadcastExchangeLike) {
            return true;
        }
        if (plan instanceof Exchange || plan instanceof ReusedExchangeExec
            || MergedRows.scan(plan) != null) {
            leaves.add(plan);
            return true;
        }
        if (plan.children().isEmpty() || hidden.containsKey(plan) || plan instanceof UnionExec
            || plan instanceof CoalesceExec || plan instanceof CartesianProductExec
            || plan instanceof BroadcastNestedLoopJoinExec) {
            return false;
        }
        for (SparkPlan child : JavaConverters.asJavaIterable(plan.children())) {
            if (!collect(child, hidden, leaves)) {
                return false;
            }
        }
        return true;
    }

    private static boolean mayMerge(ShuffleExchangeLike exchange) {
        ShuffleOrigin origin = exchange.shuffleOrigin();
        return origin == ENSURE_REQUIREMENTS$.MODULE$ || origin == REPARTITION_BY_COL$.MODULE$;
    }

    /** Neighbours together, so that this many tasks read alike. */
    private static ShufflePartitionSpec[] forTasks(int number, long[] sizes) {
        long[] before = new long[sizes.length + 1];
        for (int i = 0; i < sizes.length; i++) {
            before[i + 1] = before[i] + sizes[i];
        }
        ArrayList<ShufflePartitionSpec> merged = new ArrayList<ShufflePartitionSpec>();
        int start = 0;
        for (int i = 1; i <= number; i++) {
            int end = start + 1;
            double share = before[sizes.length] * (double) i / number;
            while (end < sizes.length - (number - i) && before[end] + sizes[end] / 2.0 <= share) {
                end++;
            }
            end = i == number ? sizes.length : end;
            merged.add(new CoalescedPartitionSpec(start, end, (Option) scala.None$.MODULE$));
            start = end;
        }
        return (ShufflePartitionSpec[]) merged.toArray(new ShufflePartitionSpec[0]);
    }

    /** Neighbours together, as many as stay within the target. */
    private static ShufflePartitionSpec[] upTo(long target, long[] sizes) {
        ArrayList<ShufflePartitionSpec> merged = new ArrayList<ShufflePartitionSpec>();
        int start = 0;
        long bytes = 0L;
        for (int i = 0; i <= sizes.length; i++) {
            if (i == sizes.length || (i > start && bytes + sizes[i] > target)) {
                merged.add(new CoalescedPartitionSpec(start, i, (Option) scala.None$.MODULE$));
                start = i;
                bytes = 0L;
            }
            if (i < sizes.length) {
                bytes += sizes[i];
            }
        }
        return (ShufflePartitionSpec[]) merged.toArray(new ShufflePartitionSpec[0]);
    }
}
