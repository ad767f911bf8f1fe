package flinkmagic.planning;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;

import flinkmagic.jvm.Reflect;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Partial$;
import org.apache.spark.sql.catalyst.plans.ExistenceJoin;
import org.apache.spark.sql.catalyst.plans.InnerLike;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.LeftOuter$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.plans.physical.RangePartitioning;
import org.apache.spark.sql.catalyst.plans.physical.RoundRobinPartitioning;
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition$;
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.UnionExec;
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.exchange.BroadcastExchangeLike;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike;
import org.apache.spark.sql.execution.joins.BaseJoinExec;
import scala.collection.JavaConverters;

/**
 * Which shuffles need only the rows of files that were added, beside those that an earlier job has written.
 *
 * What an operator makes of all rows must be what it makes of the former ones and, together with that, what it makes of
 * the added ones. This holds for operators that look at one row at a time, for joins of which one side has grown whose
 * rows each find their partners by themselves, and for the first half of an aggregation, whose second half merges
 * buffers of any number. So the rows of an exchange above such operators are those that are there, and those that the
 * same operators make of the added files; an exchange below them is read for its added rows alone. What is above other
 * operators is computed whole, of exchanges that are brought up to date where they can be.
 *
 * Seen on Spark 3.5 and 4.3.
 */
public class AppendedRows {
    /** Operators that look at one row at a time, or whose order of rows does not matter below an exchange. */
    private static final Set<String> ROW_BY_ROW = names(new String[] {
        "BatchEvalPythonExec", "CoalesceExec", "ColumnarToRowExec", "ExpandExec", "FilterExec", "GenerateExec",
        "InputAdapter", "ProjectExec", "SortExec", "WholeStageCodegenExec"
    });

    /** Functions whose buffers may be merged in any order, to the same value but for the rounding of sums. */
    private static final Set<String> MERGED = names(new String[] {
        "Average", "BitAndAgg", "BitOrAgg", "BitXorAgg", "Corr", "Count", "CovPopulation", "CovSample",
        "HyperLogLogPlusPlus", "Kurtosis", "Max", "Min", "Percentile", "PearsonCorrelation", "Skewness", "StddevPop",
        "StddevSamp", "Sum", "VariancePop", "VarianceSamp"
    });

    /** Python functions that are called for each row (`PythonEvalType.SQL_ARROW_BATCHED_UDF`), be it in batches. */
    private static final int ARROW_ROW_BY_ROW = 101;

    private final PlanRebuilder plans;
    private final IdentityHashMap<Object, Former> formers = new IdentityHashMap<Object, Former>();

    public AppendedRows(PlanRebuilder plans) {
        this.plans = plans;
    }

    /**
     * Earlier jobs have made rows of a result of this one.
     *
     * @param result an exchange, or the relation of rows that are kept: their plan may be an exchange, too
     * @param states by result that is there, the digests of the files that it and those before it hold, by index
     * @param added by index what the files' digest was, and the paths of those that were added; null if there are none
     */
    public void know(
            Object result, List<IdentityHashMap<Object, String>> states, IdentityHashMap<Object, Object[]> added) {
        formers.put(result, new Former(states, added));
    }

    /** Makes the plans that run make of a result what is added, if that is enough; else why it is not. */
    public String decide(Object result) throws Exception {
        Former former = (Former) formers.get(result);
        if (!former.isDecided) {
            Walk walk = new Walk(former);
            SparkPlan top;
            if (result instanceof InMemoryRelation) {
                top = ((InMemoryRelation) result).cacheBuilder().cachedPlan();
                former.reason = walk.kept(top);
            } else {
                top = (SparkPlan) ((SparkPlan) result).children().head();
                former.reason = walk.exchange((SparkPlan) result);
            }
            former.isDecided = true;
            former.isNotable = walk.isAtJoin || walk.reads(top);
            if (former.reason == null) {
                plans.append(walk.scans, walk.without, walk.since);
            }
        }
        return former.reason;
    }

    /** Whether a result that is made in full costs much: if its stage reads added files itself, or joins. */
    public boolean isNotable(Object result) {
        return ((Former) formers.get(result)).isNotable;
    }

    /** What is there of a result. */
    static class Former {
        final List<IdentityHashMap<Object, String>> states;
        final IdentityHashMap<Object, Object[]> added;
        boolean isDecided = false;
        boolean isNotable = false;
        String reason;

        Former(List<IdentityHashMap<Object, String>> states, IdentityHashMap<Object, Object[]> added) {
            this.states = states;
            this.added = added;
        }
    }

    /** Goes through a stage from its top down. */
    private class Walk {
        private final Former own;
        private final IdentityHashMap<SparkPlan, Boolean> grown = new IdentityHashMap<SparkPlan, Boolean>();
        private final IdentityHashMap<SparkPlan, SparkPlan> seen = new IdentityHashMap<SparkPlan, SparkPlan>();
        final IdentityHashMap<SparkPlan, Set<String>> scans = new IdentityHashMap<SparkPlan, Set<String>>();
        final IdentityHashMap<SparkPlan, SparkPlan> without = new IdentityHashMap<SparkPlan, SparkPlan>();
        final IdentityHashMap<SparkPlan, Integer> since = new IdentityHashMap<SparkPlan, Integer>();

        boolean isAtJoin = false;

        Walk(Former own) {
            this.own = own;
        }

        String exchange(SparkPlan plan) throws Exception {
            Partitioning partitioning = plan.outputPartitioning();
            if (!(partitioning instanceof HashPartitioning || partitioning instanceof RoundRobinPartitioning
                || partitioning == SinglePartition$.MODULE$)) {
                return "its rows are put in order";
            }
            return anySubqueryGrows(plan) ? "a subquery has grown" : rows((SparkPlan) plan.children().head());
        }

        String kept(SparkPlan plan) throws Exception {
            if (!plan.outputOrdering().isEmpty() || plan.outputPartitioning() instanceof RangePartitioning) {
                return "its rows are put in order";
            }
            return rows(plan);
        }

        /** Lets an operator, which has grown, run on what was added; or says why it cannot. */
        private String rows(SparkPlan plan) throws Exception {
            if (seen.put(plan, plan) != null) {
                return "a part of its plan stands in several places";
            }
            if (anySubqueryGrows(plan)) {
                return "a subquery has grown";
            }
            if (plan instanceof FileSourceScanExec) {
                if (!plan.subqueries().isEmpty()) {
                    return "which files are read is only known when it runs";
                }
                scans.put(plan, added((FileSourceScanExec) plan));
                return null;
            }
            if (plan instanceof ShuffleExchangeLike || plan instanceof ReusedExchangeExec) {
                return input(plan);
            }
            if (plan instanceof BroadcastExchangeLike) {
                return "the broadcast side of a join has grown";
            }
            if (plan instanceof UnionExec) {
                return union(plan);
            }
            if (plan instanceof BaseJoinExec) {
                return join((BaseJoinExec) plan);
            }
            String why = null;
            String kind = plan.getClass().getSimpleName();
            if (plan instanceof BaseAggregateExec) {
                why = aggregate((BaseAggregateExec) plan);
            } else if (kind.equals("ArrowEvalPythonExec")) {
                int type = ((Integer) Reflect.call(plan, "evalType")).intValue();
                why = type == ARROW_ROW_BY_ROW ? null : "a function is called with batches of rows";
            } else if (!ROW_BY_ROW.contains(kind)) {
                why = plan.children().isEmpty() ? "it reads a " + plan.nodeName() : plan.nodeName() + " needs all rows";
            }
            return why != null ? why : rows((SparkPlan) plan.children().head());
        }

        /** An exchange below the stage: it must have what was added since the same moment apart from the rest. */
        private String input(SparkPlan plan) throws Exception {
            SparkPlan exchange = plan;
            while (exchange != null && !formers.containsKey(exchange)) {
                if (exchange instanceof BroadcastExchangeLike) {
                    return "the broadcast side of a join has grown";
                }
                exchange = exchange instanceof ReusedExchangeExec
                    ? (SparkPlan) ((ReusedExchangeExec) exchange).child() : plans.standIn(exchange);
            }
            Former former = (Former) formers.get(exchange);
            if (former == null) {
                return "the rows of one of its inputs are not kept";
            }
            if (former.added != null) {
                String why = decide(exchange);
                if (why != null) {
                    return why;
                }
            }
            for (int i = 0; i < former.states.size(); i++) {
                if (isBase((IdentityHashMap<Object, String>) former.states.get(i))) {
                    since.put(plan, Integer.valueOf(i + 1));
                    return null;
                }
            }
            return "one of its inputs has grown at other times";
        }

        private boolean isBase(IdentityHashMap<Object, String> state) {
            for (Object index : state.keySet()) {
                Object[] known = (Object[]) own.added.get(index);
                if (known == null || !known[0].equals(state.get(index))) {
                    return false;
                }
            }
            return true;
        }

        private String union(SparkPlan plan) throws Exception {
            if (!(plan.outputPartitioning() instanceof UnknownPartitioning)) {
                return "a union puts partitions together";
            }
            for (SparkPlan child : JavaConverters.asJavaIterable(plan.children())) {
                String why = null;
                if (grows(child)) {
                    why = rows(child);
                } else {
                    without.put(child, child);
                }
                if (why != null) {
                    return why;
                }
            }
            return null;
        }

        private String join(BaseJoinExec join) throws Exception {
            SparkPlan left = (SparkPlan) join.left();
            SparkPlan right = (SparkPlan) join.right();
            boolean isLeft = grows(left);
            isAtJoin = true;
            if (isLeft && grows(right)) {
                return "both sides of a join have grown";
            }
            JoinType type = join.joinType();
            boolean isSemi = type == LeftSemi$.MODULE$ || type == LeftAnti$.MODULE$ || type instanceof ExistenceJoin;
            boolean isOneByOne = type instanceof InnerLike || isLeft && (isSemi || type == LeftOuter$.MODULE$)
                || !isLeft && type == RightOuter$.MODULE$;
            if (!isOneByOne) {
                return "the " + (isLeft ? "left" : "right") + " side of a " + type.sql().toLowerCase()
                    + " join has grown";
            }
            isAtJoin = false;
            return rows(isLeft ? left : right);
        }

        private String aggregate(BaseAggregateExec plan) throws Exception {
            for (Attribute column : JavaConverters.asJavaIterable(((SparkPlan) plan).output())) {
                if (column.dataType().catalogString().contains("collate")) {
                    return "which of several texts that count as equal is taken may depend on the order of rows";
                }
            }
            for (AggregateExpression each : JavaConverters.asJavaIterable(plan.aggregateExpressions())) {
                String function = each.aggregateFunction().getClass().getSimpleName();
                if (!MERGED.contains(function)) {
                    return each.aggregateFunction().prettyName() + " may depend on the order of rows";
                }
                if (each.mode() != Partial$.MODULE$) {
                    return "an aggregate needs all rows";
                }
            }
            return plan.requiredChildDistributionExpressions().isEmpty() ? null : "an aggregate needs all rows";
        }

        private Set<String> added(FileSourceScanExec scan) {
            Object[] known = (Object[]) own.added.get(scan.relation().location());
            return known == null ? new HashSet<String>() : (Set<String>) known[1];
        }

        private boolean anySubqueryGrows(SparkPlan plan) throws Exception {
            for (SparkPlan subquery : JavaConverters.asJavaIterable(plan.subqueries())) {
                if (grows(subquery)) {
                    return true;
                }
            }
            return false;
        }

        /** Whether any file was added that a plan is computed from. */
        private boolean grows(SparkPlan plan) throws Exception {
            Boolean known = (Boolean) grown.get(plan);
            if (known == null) {
                boolean does = plan instanceof FileSourceScanExec && !added((FileSourceScanExec) plan).isEmpty();
                for (SparkPlan part : PlanNodes.parts(plan)) {
                    does = does || grows(part);
                }
                Object hidden = Reflect.callIfAny(plan, "child");  // of what is reused
                does = does || hidden instanceof SparkPlan && grows((SparkPlan) hidden);
                SparkPlan kept = plan instanceof InMemoryTableScanExec
                    ? ((InMemoryTableScanExec) plan).relation().cacheBuilder().cachedPlan() : null;
                does = does || kept != null && grows(kept);
                known = Boolean.valueOf(does);
                grown.put(plan, known);
            }
            return known.booleanValue();
        }

        /** Whether a stage reads added files, from this operator down to its inputs. */
        boolean reads(SparkPlan plan) throws Exception {
            if (plan instanceof FileSourceScanExec) {
                return !added((FileSourceScanExec) plan).isEmpty();
            }
            for (SparkPlan child : JavaConverters.asJavaIterable(plan.children())) {
                if (!(child instanceof ShuffleExchangeLike || child instanceof BroadcastExchangeLike) && reads(child)) {
                    return true;
                }
            }
            return false;
        }
    }

    private static Set<String> names(String[] names) {
        return new HashSet<String>(Arrays.asList(names));
    }
}
