package flinkmagic.planning;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.IdentityHashMap;

import org.apache.spark.Partition;
import org.apache.spark.rdd.CoalescedRDD;
import org.apache.spark.rdd.CoalescedRDDPartition;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.plans.physical.RangePartitioning;
import org.apache.spark.sql.execution.CoalesceExec;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.UnionExec;
import org.apache.spark.sql.execution.columnar.CachedRDDBuilder;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.exchange.BroadcastExchangeLike;
import org.apache.spark.sql.execution.exchange.Exchange;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.execution.joins.BroadcastNestedLoopJoinExec;
import org.apache.spark.sql.execution.joins.CartesianProductExec;
import scala.collection.Iterator;

/** Rows of a cached relation, several neighbouring partitions of which one task reads. */
public class MergedRows {
    /**
     * The operator that gives the rows of the only relation that a stage reads, besides broadcasts; null if the stage
     * reads something else, or relies on an order within the relation's partitions.
     *
     * @param hidden operators that make a shuffle by themselves
     */
    public static SparkPlan only(SparkPlan top, IdentityHashMap hidden) {
        ArrayList found = new ArrayList();
        return collect(top, hidden, found) && found.size() == 1 && mayMerge(top, (SparkPlan) found.get(0))
            ? (SparkPlan) found.get(0) : null;
    }

    /** Who keeps the rows. */
    public static CachedRDDBuilder builder(SparkPlan rows) {
        return scan(rows).relation().cacheBuilder();
    }

    /** The order of the rows of each task. */
    public static scala.collection.Seq order(SparkPlan rows) {
        return isInOrder(rows) ? rows.outputOrdering() : scala.collection.immutable.Nil$.MODULE$;
    }

    /**
     * Neighbours together, in their order. `coalesce` would put partitions together by where they are kept; a coalescer
     * of one's own is sent with each task, to executors that do not have its class.
     */
    public static RDD of(RDD rows, int number) throws Exception {
        Partition[] parts = new Partition[number];
        int all = rows.getNumPartitions();
        for (int i = 0; i < number; i++) {
            int first = (int) ((long) all * i / number);
            int[] members = new int[(int) ((long) all * (i + 1) / number) - first];
            for (int j = 0; j < members.length; j++) {
                members[j] = first + j;
            }
            parts[i] = new CoalescedRDDPartition(i, rows, members, scala.Option.empty());
        }
        RDD merged = new CoalescedRDD(rows, number, scala.Option.empty(), rows.elementClassTag());
        Field partitions = RDD.class.getDeclaredField("partitions_");
        partitions.setAccessible(true);
        partitions.set(merged, parts);
        return merged;
    }

    private static boolean collect(SparkPlan plan, IdentityHashMap hidden, ArrayList found) {
        if (plan instanceof BroadcastExchangeLike || plan instanceof ReusedExchangeExec
            && ((ReusedExchangeExec) plan).child() instanceof BroadcastExchangeLike) {
            return true;
        }
        if (scan(plan) != null) {
            found.add(plan);
            return true;
        }
        if (plan.children().isEmpty() || plan instanceof Exchange || plan instanceof ReusedExchangeExec
            || plan instanceof UnionExec || plan instanceof CoalesceExec || plan instanceof CartesianProductExec
            || plan instanceof BroadcastNestedLoopJoinExec || hidden.containsKey(plan)) {
            return false;
        }
        Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            if (!collect((SparkPlan) children.next(), hidden, found)) {
                return false;
            }
        }
        return true;
    }

    /** The scan of a relation whose rows an operator gives; null for any other operator. */
    private static InMemoryTableScanExec scan(SparkPlan plan) {
        SparkPlan scan = plan instanceof ColumnarToRowExec ? ((ColumnarToRowExec) plan).child() : plan;
        scan = scan instanceof InputAdapter ? ((InputAdapter) scan).child() : scan;
        return scan instanceof InMemoryTableScanExec ? (InMemoryTableScanExec) scan : null;
    }

    private static boolean isInOrder(SparkPlan rows) {
        return rows.outputPartitioning() instanceof RangePartitioning;
    }

    private static boolean mayMerge(SparkPlan plan, SparkPlan rows) {
        if (plan == rows || isInOrder(rows) || rows.outputOrdering().isEmpty()) {
            return true;
        }
        Iterator required = plan.requiredChildOrdering().iterator();
        while (required.hasNext()) {
            if (!((scala.collection.Seq) required.next()).isEmpty()) {
                return false;
            }
        }
        Iterator children = plan.children().iterator();
        while (children.hasNext()) {
            SparkPlan child = (SparkPlan) children.next();
            if (!(child instanceof SortExec) && !mayMerge(child, rows)) {
                return false;
            }
        }
        return true;
    }
}
