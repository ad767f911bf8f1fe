package flinkmagic.planning;

import java.util.ArrayList;
import java.util.IdentityHashMap;

import org.apache.spark.MapOutputStatistics;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.optimizer.BuildLeft$;
import org.apache.spark.sql.catalyst.optimizer.BuildRight$;
import org.apache.spark.sql.catalyst.optimizer.BuildSide;
import org.apache.spark.sql.catalyst.plans.ExistenceJoin;
import org.apache.spark.sql.catalyst.plans.InnerLike;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.LeftOuter$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.execution.CodegenSupport;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.TakeOrderedAndProjectExec;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.aggregate.HashAggregateExec;
import org.apache.spark.sql.execution.exchange.Exchange;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike;
import org.apache.spark.sql.execution.joins.ShuffledHashJoinExec;
import org.apache.spark.sql.execution.joins.SortMergeJoinExec;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.DecimalType;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/**
 * Chooses how a join of shuffled rows is run once its inputs are written and their real sizes known.
 *
 * Spark's adaptive execution replans with real sizes (`AdaptiveSparkPlanExec.reOptimize`): a sort-merge join becomes a
 * broadcast if a side is below the broadcast threshold, or hashes each partition if all of them are small
 * (`DynamicJoinSelection`). Here the stages are fixed beforehand. So the join stays where it is, and hashes the smaller
 * side if each of its partitions is below the broadcast threshold (see `limit`): no sorting, nothing to collect.
 *
 * The order of a sort-merge join's rows is lost. So no operator above may need it (`requiredChildOrdering`), up to one
 * that has no order or another one. If Spark removed one of the user's sorts because rows came in that order anyway
 * (`RemoveRedundantSorts`), nothing in the plan tells who needs the order: all joins of such a query stay as they are.
 */
public class AdaptiveJoins {
    /** Set on the session that plans a job: whether the user's session plans adaptively. */
    public static final String ENABLED = "flinkmagic.planning.adaptive";

    /** Spark's own default for the broadcast threshold. */
    private static final long MOST = 10L * 1024L * 1024L;

    /**
     * How many times a task's limit a side may have in all. The largest partition's share is a share of compressed
     * bytes; if one partition compresses far better than others, it has more rows than its share says.
     */
    private static final long MOST_IN_ALL = 8L;

    private final IdentityHashMap<SparkPlan, Double> shares = new IdentityHashMap<SparkPlan, Double>();
    private final IdentityHashMap<SparkPlan, ArrayList> behind = new IdentityHashMap<SparkPlan, ArrayList>();
    private final IdentityHashMap<SparkPlan, Boolean> free = new IdentityHashMap<SparkPlan, Boolean>();
    private final IdentityHashMap<SparkPlan, Boolean> fixed = new IdentityHashMap<SparkPlan, Boolean>();
    private final IdentityHashMap<SparkPlan, String> chosen = new IdentityHashMap<SparkPlan, String>();

    /** A shuffle is written; null if an earlier job wrote it. */
    public void written(Exchange exchange, MapOutputStatistics statistics) {
        double largestShare = 1.0;  // at worst all of it is in one partition
        if (statistics != null) {
            long largest = 0L;
            long all = 0L;
            for (int i = 0; i < statistics.bytesByPartitionId().length; i++) {
                largest = Math.max(largest, statistics.bytesByPartitionId()[i]);
                all += statistics.bytesByPartitionId()[i];
            }
            largestShare = (double) largest / Math.max(1L, all);
        }
        shares.put(exchange, Double.valueOf(largestShare));
    }

    /** A scan represents a shuffle in the plans that are made, or several that have its rows. */
    public void standsFor(SparkPlan scan, ArrayList<Exchange> exchanges) {
        behind.put(scan, exchanges);
    }

    /** The plan of a whole query or write, as Spark's planner made it of its optimized plan. */
    public void plan(SparkPlan root, LogicalPlan optimized) {
        int[] found = new int[1];
        countSorts(root, found);
        if (countSorts(optimized) > found[0]) {
            fix(root);
        }
    }

    /** No operator needs the order of the rows that this plan returns. */
    public void free(SparkPlan plan) {
        free.put(plan, Boolean.TRUE);
    }

    /** The inputs of an operator are about to be made. */
    public void descend(SparkPlan plan) {
        boolean isFree = free.containsKey(plan) || plan instanceof Exchange || plan instanceof SortExec
            || plan instanceof TakeOrderedAndProjectExec || plan.outputOrdering().isEmpty();
        Iterator orderings = plan.requiredChildOrdering().iterator();
        Iterator children = plan.children().iterator();
        while (isFree && children.hasNext()) {
            SparkPlan child = (SparkPlan) children.next();
            if (((Seq) orderings.next()).isEmpty()) {
                free(child);
            }
        }
    }

    /** What was decided for a planned join: its name, the side that is hashed, its bytes; null if nothing. */
    public String choice(SparkPlan planned) {
        return (String) chosen.get(planned);
    }

    /** The join that runs for a planned one; `made` is the planned join over inputs that were made. */
    public SparkPlan choose(SparkPlan planned, SparkPlan made) {
        boolean isMerge = made instanceof SortMergeJoinExec;
        if (!(isMerge || made instanceof ShuffledHashJoinExec) || !free.containsKey(planned)
            || fixed.containsKey(planned) || hasHint(planned)) {
            return made;
        }
        SQLConf conf = made.conf();
        if (!"true".equals(conf.getConfString(ENABLED, "false"))) {
            return made;
        }
        long limit = limit(conf);
        return isMerge ? merged((SortMergeJoinExec) made, planned, limit)
            : hashed((ShuffledHashJoinExec) made, planned, limit);
    }

    /**
     * What one task may hash. It is kept in memory whole, by as many tasks as run simultaneously. So a threshold that
     * was raised for broadcasts does not count, but the one that Spark has for this does, if it is set.
     */
    private static long limit(SQLConf conf) {
        Option adaptive = (Option) conf.getConf(SQLConf$.MODULE$.ADAPTIVE_AUTO_BROADCASTJOIN_THRESHOLD());
        long broadcast = adaptive.isDefined()
            ? ((Long) adaptive.get()).longValue() : conf.autoBroadcastJoinThreshold();
        long local = ((Long) conf.getConf(
            SQLConf$.MODULE$.ADAPTIVE_MAX_SHUFFLE_HASH_JOIN_LOCAL_MAP_THRESHOLD())).longValue();
        return local > 0L ? local : Math.min(broadcast, MOST);
    }

    private SparkPlan merged(SortMergeJoinExec join, SparkPlan planned, long threshold) {
        if (join.isSkewJoin() || !areHashable(join.leftKeys()) || !areHashable(join.rightKeys())) {
            return join;
        }
        BuildSide side = smallSide(join.joinType(), new Side(join.left()), new Side(join.right()), threshold);
        if (side == null) {
            return join;
        }
        return instead(planned, join, side, new ShuffledHashJoinExec(
            join.leftKeys(), join.rightKeys(), join.joinType(), side, join.condition(),
            unsorted(join.left()), unsorted(join.right()), false));
    }

    private SparkPlan hashed(ShuffledHashJoinExec join, SparkPlan planned, long threshold) {
        BuildSide side = smallSide(join.joinType(), new Side(join.left()), new Side(join.right()), threshold);
        if (join.isSkewJoin() || side == null || side == join.buildSide()) {
            return join;
        }
        return instead(planned, join, side, new ShuffledHashJoinExec(
            join.leftKeys(), join.rightKeys(), join.joinType(), side, join.condition(),
            join.left(), join.right(), false));
    }

    private SparkPlan instead(SparkPlan planned, SparkPlan made, BuildSide side, ShuffledHashJoinExec join) {
        if (((CodegenSupport) made).supportCodegen() && !join.supportCodegen()) {
            return made;  // the code of its stage is generated with it
        }
        boolean isLeft = side == BuildLeft$.MODULE$;
        long bytes = new Side(isLeft ? join.left() : join.right()).bytes;
        chosen.put(planned, planned.nodeName() + "\t" + (isLeft ? "left" : "right") + "\t" + bytes);
        join.copyTagsFrom(planned);
        return join;
    }

    /**
     * Not a side all of whose rows an outer join keeps, though Spark could: marking which of them found a partner costs
     * as much as sorting, and the order that helps an aggregation find its groups is lost.
     */
    private static BuildSide smallSide(JoinType type, Side left, Side right, long threshold) {
        boolean isInner = type instanceof InnerLike;
        boolean canLeft = (isInner || type == RightOuter$.MODULE$) && left.fits(threshold);
        boolean canRight = (isInner || type == LeftOuter$.MODULE$ || type == LeftSemi$.MODULE$
            || type == LeftAnti$.MODULE$ || type instanceof ExistenceJoin) && right.fits(threshold);
        if (canLeft && (!canRight || left.bytes < right.bytes)) {
            return BuildLeft$.MODULE$;
        }
        return canRight ? (BuildSide) BuildRight$.MODULE$ : null;
    }

    /** A hash compares bytes: a collation may make different strings equal. */
    private static boolean areHashable(Seq<Expression> keys) {
        for (Expression key : JavaConverters.asJavaIterable(keys)) {
            if (key.dataType().catalogString().contains("collate")) {
                return false;
            }
        }
        return true;
    }

    private static boolean hasHint(SparkPlan join) {
        Option link = join.logicalLink();
        if (!link.isDefined() || !(link.get() instanceof Join)) {
            return true;  // it cannot be known
        }
        Join logical = (Join) link.get();
        return hasStrategy(logical.hint().leftHint()) || hasStrategy(logical.hint().rightHint());
    }

    private static boolean hasStrategy(Option hint) {
        return hint.isDefined() && ((HintInfo) hint.get()).strategy().isDefined();
    }

    private static int countSorts(LogicalPlan plan) {
        int sorts = plan instanceof Sort ? 1 : 0;
        for (LogicalPlan child : JavaConverters.asJavaIterable(plan.children())) {
            sorts += countSorts(child);
        }
        for (LogicalPlan subquery : JavaConverters.asJavaIterable(plan.subqueries())) {
            sorts += countSorts(subquery);
        }
        return sorts;
    }

    /** The sorts that were planned for sorts of the query. */
    private static void countSorts(SparkPlan plan, int[] found) {
        if (plan instanceof TakeOrderedAndProjectExec || (plan instanceof SortExec
            && plan.logicalLink().isDefined() && plan.logicalLink().get() instanceof Sort)) {
            found[0]++;
        }
        SparkPlan reused = PlanNodes.reused(plan);
        if (reused != null) {
            countSorts(reused, found);
        }
        for (SparkPlan part : PlanNodes.parts(plan)) {
            countSorts(part, found);
        }
    }

    private void fix(SparkPlan plan) {
        fixed.put(plan, Boolean.TRUE);
        for (SparkPlan part : PlanNodes.parts(plan)) {
            fix(part);
        }
    }

    /** An input of a join without the sort on top of it. */
    private static SparkPlan unsorted(SparkPlan input) {
        if (input instanceof InputAdapter) {
            SparkPlan inner = unsorted(((InputAdapter) input).child());
            return inner instanceof InputAdapter ? inner : new InputAdapter(inner);
        }
        if (input instanceof WholeStageCodegenExec) {
            WholeStageCodegenExec stage = (WholeStageCodegenExec) input;
            SparkPlan inner = unsorted(stage.child());
            return inner instanceof InputAdapter ? inner : new WholeStageCodegenExec(inner, stage.codegenStageId());
        }
        return input instanceof SortExec && !((SortExec) input).global() ? ((SortExec) input).child() : input;
    }

    /** One input of a join, as far as its size is known. */
    private class Side {
        final long bytes;
        final double largestShare;

        Side(SparkPlan input) {
            SparkPlan below = input;
            boolean isChanged = false;
            while (!(below instanceof Exchange || behind.containsKey(below))) {
                isChanged = isChanged || !isTransparent(below);
                if (!isTransparent(below) && !keepsOrDropsRows(below)) {
                    break;
                }
                below = (SparkPlan) below.children().head();
            }
            ArrayList parts = (ArrayList) behind.get(below);
            if (parts == null) {
                parts = new ArrayList();
                parts.add(below instanceof ReusedExchangeExec ? ((ReusedExchangeExec) below).child() : below);
            }
            // Where several shuffles have the rows, the sizes of all together are noted with the last.
            Double share = (Double) shares.get(parts.get(parts.size() - 1));
            if (share == null) {
                bytes = -1L;
                largestShare = 1.0;
                return;
            }
            long shuffled = 0L;
            long rows = 0L;
            for (Object part : parts) {
                Statistics statistics = ((ShuffleExchangeLike) part).runtimeStatistics();
                shuffled += statistics.sizeInBytes().longValue();
                rows += rowsOf(statistics);
            }
            largestShare = share.doubleValue();
            bytes = isChanged ? Math.max(shuffled, rows * rowBytes(input)) : shuffled;
        }

        /** Whether each partition is small enough to be hashed. */
        boolean fits(long threshold) {
            return bytes >= 0L && bytes * largestShare <= threshold && bytes <= MOST_IN_ALL * threshold;
        }
    }

    private static boolean isTransparent(SparkPlan plan) {
        return plan instanceof InputAdapter || plan instanceof WholeStageCodegenExec || plan instanceof SortExec
            || plan instanceof FilterExec;
    }

    /** Whether an operator returns no more rows than it gets, and its new columns have a size that can be told. */
    private static boolean keepsOrDropsRows(SparkPlan plan) {
        if (!(plan instanceof ProjectExec || plan instanceof HashAggregateExec)) {
            return false;
        }
        SparkPlan input = (SparkPlan) plan.children().head();
        for (Attribute column : JavaConverters.asJavaIterable(plan.output())) {
            if (!(UnsafeRow.isFixedLength(column.dataType()) || column.dataType() instanceof DecimalType
                || input.outputSet().contains(column))) {
                return false;
            }
        }
        return true;
    }

    private static long rowsOf(Statistics statistics) {
        Option rows = statistics.rowCount();
        return rows.isDefined() ? ((scala.math.BigInt) rows.get()).longValue() : Long.MAX_VALUE / 1000000L;
    }

    /** As Spark estimates a row whose values it does not know. */
    private static long rowBytes(SparkPlan plan) {
        long bytes = 8L;
        for (Attribute column : JavaConverters.asJavaIterable(plan.output())) {
            bytes += column.dataType().defaultSize();
        }
        return bytes;
    }
}
