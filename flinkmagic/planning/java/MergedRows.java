package flinkmagic.planning;

import java.util.ArrayList;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.plans.physical.RangePartitioning;
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning;
import org.apache.spark.sql.execution.CoalescedPartitionSpec;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.ShufflePartitionSpec;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.exchange.Exchange;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/** Rows that runs keep, several neighbouring partitions of which one task reads. */
public class MergedRows {
    /** The scan of kept rows that a plan is, with its conversion to rows if it has one; null if it is none. */
    public static InMemoryTableScanExec scan(SparkPlan plan) {
        boolean converts = plan instanceof ColumnarToRowExec;
        SparkPlan below = converts ? ((ColumnarToRowExec) plan).child() : plan;
        if (converts && below instanceof InputAdapter) {
            below = ((InputAdapter) below).child();
        }
        if (!(below instanceof InMemoryTableScanExec) || below.supportsRowBased() == converts) {
            return null;
        }
        InMemoryTableScanExec scan = (InMemoryTableScanExec) below;
        return PlanLeaves.isOfRun(scan.relation().cacheBuilder()) ? scan : null;
    }

    /** A scan that also reads the columns by which its rows are sorted, if merging partitions loses the order. */
    public static InMemoryTableScanExec withOrder(InMemoryTableScanExec scan) {
        ArrayList attributes = columns(scan);
        int read = attributes.size();
        for (SortOrder order : lostOrder(scan)) {
            for (Object column : JavaConverters.asJavaIterable(order.references())) {
                if (!attributes.contains(column)) {
                    attributes.add(column);
                }
            }
        }
        return attributes.size() == read ? scan
            : new InMemoryTableScanExec(PlanNodes.vector(attributes), scan.predicates(), scan.relation());
    }

    /** The columns that a scan reads. */
    public static ArrayList columns(InMemoryTableScanExec scan) {
        return new ArrayList(JavaConverters.seqAsJavaList(scan.attributes()));
    }

    /** The positions of the columns that a scan reads among those of its rows. */
    public static int[] positions(InMemoryTableScanExec scan) {
        ArrayList<Long> kept = new ArrayList<Long>();
        for (Attribute column : JavaConverters.asJavaIterable(scan.relation().output())) {
            kept.add(Long.valueOf(column.exprId().id()));
        }
        int[] found = new int[scan.attributes().size()];
        for (int i = 0; i < found.length; i++) {
            found[i] = kept.indexOf(Long.valueOf(((Attribute) scan.attributes().apply(i)).exprId().id()));
        }
        return found;
    }

    /** How many bytes a row has in some columns, by the default sizes of their types. */
    public static long width(Seq columns) {
        long sum = 0;
        for (Object column : JavaConverters.asJavaIterable(columns)) {
            sum += ((Attribute) column).dataType().defaultSize();
        }
        return sum;
    }

    /**
     * The rows of a scan, as tasks of several partitions read them.
     *
     * @param scan as `withOrder` returns it
     * @param output the columns that are asked for
     */
    public static SparkPlan together(InMemoryTableScanExec scan, ArrayList output, ShufflePartitionSpec[] specs)
            throws Exception {
        SparkPlan rows = scan.supportsRowBased() ? (SparkPlan) scan : new ColumnarToRowExec(scan);
        ArrayList<SortOrder> lost = lostOrder(scan);
        Partitioning partitioning = new UnknownPartitioning(specs.length);
        Seq ordering = lost.isEmpty() ? (Seq) scan.outputOrdering() : (Seq) PlanNodes.vector(new ArrayList());
        SparkPlan made = PlanNodes.scanOver(scan, neighbours(rows.execute(), specs), partitioning, ordering);
        if (!lost.isEmpty()) {
            made = new SortExec(PlanNodes.vector(lost), false, made, 0);
        }
        if (output.size() < scan.attributes().size()) {
            made = new ProjectExec(PlanNodes.vector(output), made);
        }
        return new InputAdapter(made);  // an operator above may be one of generated code
    }

    /** Neighbours together, in their order. */
    private static RDD neighbours(RDD rows, ShufflePartitionSpec[] specs) throws Exception {
        ArrayList<int[]> groups = new ArrayList<int[]>();
        for (ShufflePartitionSpec each : specs) {
            CoalescedPartitionSpec spec = (CoalescedPartitionSpec) each;
            int[] members = new int[spec.endReducerIndex() - spec.startReducerIndex()];
            for (int j = 0; j < members.length; j++) {
                members[j] = spec.startReducerIndex() + j;
            }
            groups.add(members);
        }
        return PlanNodes.grouped(rows, groups);
    }

    /** Whether partitions of a plan's rows have an order that nothing tells, and that is lost if they are merged. */
    public static boolean hidesOrder(SparkPlan plan) {
        return plan.outputOrdering().isEmpty() && sortsWithinPartitions(plan);
    }

    private static boolean sortsWithinPartitions(SparkPlan plan) {
        if (plan instanceof Exchange || plan instanceof ReusedExchangeExec) {
            return false;
        }
        Option logical = plan.logicalLink();
        if (plan instanceof SortExec && !((SortExec) plan).global() && logical.isDefined()
            && logical.get() instanceof Sort) {
            return true;
        }
        for (SparkPlan child : JavaConverters.asJavaIterable(plan.children())) {
            if (sortsWithinPartitions(child)) {
                return true;
            }
        }
        return false;
    }

    /** The order of the rows in each partition, unless it is that of all partitions. */
    private static ArrayList<SortOrder> lostOrder(InMemoryTableScanExec scan) {
        ArrayList<SortOrder> ordering = new ArrayList<SortOrder>();
        for (SortOrder order : JavaConverters.asJavaIterable(scan.outputOrdering())) {
            if (!order.references().subsetOf(scan.relation().outputSet())) {
                break;
            }
            ordering.add(order);
        }
        if (scan.outputPartitioning() instanceof RangePartitioning) {
            Iterator ranges = ((RangePartitioning) scan.outputPartitioning()).ordering().iterator();
            boolean isSame = true;
            for (int i = 0; i < ordering.size() && ranges.hasNext(); i++) {
                isSame = isSame && ((Expression) ranges.next()).semanticEquals((Expression) ordering.get(i));
            }
            return isSame ? new ArrayList() : ordering;
        }
        return ordering;
    }
}
