package flinkmagic.planning;

import java.util.Arrays;
import java.util.HashSet;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import scala.collection.JavaConverters;

/**
 * Tells, without planning a query, that Spark runs it as one stage: it only passes on the rows of what it reads. By the
 * same operators it tells what asks how the rows of another stage lie in partitions.
 */
public class SingleStages {
    private static final HashSet<String> SAME_ROWS = new HashSet<String>(Arrays.asList(new String[] {
        "DataSourceV2Relation", "DataSourceV2ScanRelation", "HiveTableRelation", "InMemoryRelation", "LocalRelation",
        "LogicalRelation", "Project", "Range", "ResolvedHint", "SubqueryAlias", "View"
    }));
    private static final HashSet<String> NARROW = new HashSet<String>(Arrays.asList(new String[] {
        "AttachDistributedSequence", "CommandResult", "DataSourceV2Relation", "DataSourceV2ScanRelation",
        "DeserializeToObject", "ExternalRDD", "Filter", "Generate", "HiveTableRelation", "LocalRelation",
        "LogicalRDD", "LogicalRelation", "MapElements", "MapInArrow", "MapInPandas", "MapPartitions",
        "OneRowRelation", "Project", "PythonMapInArrow", "Range", "ResolvedHint", "Sample", "SerializeFromObject",
        "SubqueryAlias", "TypedFilter", "Union", "View"
    }));

    /** What gives other values if the same rows lie in other partitions; seeds count by partition. */
    private static final HashSet<String> BY_PARTITION = new HashSet<String>(Arrays.asList(new String[] {
        "MonotonicallyIncreasingID", "Rand", "RandStr", "Randn", "Shuffle", "SparkPartitionID", "Uniform"
    }));

    /**
     * Whether it asks how rows lie in partitions that are made by a shuffle: adaptive Spark decides how many it merges
     * by what this query alone shuffles.
     */
    public boolean asksForMergedPartitions(QueryExecution query) {
        return asksForMergedPartitions(query.withCachedData());
    }

    private static boolean asksForMergedPartitions(LogicalPlan plan) {
        boolean asks = plan.getClass().getSimpleName().equals("Sample");
        for (Expression expression : JavaConverters.asJavaIterable(plan.expressions())) {
            asks = asks || isByPartition(expression);
        }
        for (LogicalPlan child : JavaConverters.asJavaIterable(plan.children())) {
            if (asks && mayShuffle(child) || asksForMergedPartitions(child)) {
                return true;
            }
        }
        return false;
    }

    private static boolean isByPartition(Expression expression) {
        boolean is = BY_PARTITION.contains(expression.getClass().getSimpleName());
        for (Expression child : JavaConverters.asJavaIterable(expression.children())) {
            is = is || isByPartition(child);
        }
        return is;
    }

    /** Rows in a cache lie as they do; one that is not filled is computed by the query. */
    private static boolean mayMerge(InMemoryRelation cached) {
        return !cached.cacheBuilder().isCachedColumnBuffersLoaded() && mayMerge(cached.cacheBuilder().cachedPlan());
    }

    /** Whether adaptive Spark carries out a cache's plan, or that of a cache that this one reads. */
    private static boolean mayMerge(SparkPlan plan) {
        boolean may = plan instanceof AdaptiveSparkPlanExec
            || plan instanceof InMemoryTableScanExec && mayMerge(((InMemoryTableScanExec) plan).relation());
        for (SparkPlan child : JavaConverters.asJavaIterable(plan.children())) {
            may = may || mayMerge(child);
        }
        return may;
    }

    private static boolean mayShuffle(LogicalPlan plan) {
        if (plan instanceof InMemoryRelation) {
            return mayMerge((InMemoryRelation) plan);
        }
        boolean may = !(NARROW.contains(plan.getClass().getSimpleName()) || plan instanceof Repartition
            || plan instanceof RepartitionByExpression
            && ((RepartitionByExpression) plan).optNumPartitions().isDefined()  // nothing is merged
            || plan instanceof Sort && !((Sort) plan).global());  // randomSplit sorts each partition
        for (LogicalPlan child : JavaConverters.asJavaIterable(plan.children())) {
            may = may || mayShuffle(child);
        }
        return may;
    }

    /** Whether it surely has one stage; a query of which this is not known may have one, too. */
    public boolean surely(QueryExecution query) {
        return isNarrow(query.withCachedData());
    }

    /** Whether it asks for the first rows of a source only, one for one, which is over soon whatever it reads. */
    public boolean takesFirstRows(QueryExecution query) {
        LogicalPlan plan = query.withCachedData();
        if (!(plan instanceof GlobalLimit && ((GlobalLimit) plan).child() instanceof LocalLimit)) {
            return false;
        }
        plan = ((LocalLimit) ((GlobalLimit) plan).child()).child();
        if (plan.containsPattern(TreePattern.PYTHON_UDF()) || plan.containsPattern(TreePattern.PLAN_EXPRESSION())) {
            return false;
        }
        while (SAME_ROWS.contains(plan.getClass().getSimpleName())) {
            if (plan.children().isEmpty()) {
                return isNarrow(plan);
            }
            plan = (LogicalPlan) plan.children().head();
        }
        return false;
    }

    /** Whether a query only passes on the rows of another, or some of them; that one, or a copy of it, is inside it. */
    public boolean passesOn(LogicalPlan plan, LogicalPlan below) {
        if (plan == below || plan.canonicalized().equals(below.canonicalized())) {
            return true;
        }
        if (!(NARROW.contains(plan.getClass().getSimpleName()) || FrameParts.isLimit(plan))
            || !plan.subqueries().isEmpty()) {
            return false;
        }
        for (LogicalPlan child : JavaConverters.asJavaIterable(plan.children())) {
            if (passesOn(child, below)) {
                return true;
            }
        }
        return false;
    }

    private static boolean isNarrow(LogicalPlan plan) {
        if (plan instanceof InMemoryRelation) {
            return ((InMemoryRelation) plan).cacheBuilder().isCachedColumnBuffersLoaded();
        }
        if (!NARROW.contains(plan.getClass().getSimpleName()) || !plan.subqueries().isEmpty()) {
            return false;
        }
        for (LogicalPlan child : JavaConverters.asJavaIterable(plan.children())) {
            if (!isNarrow(child)) {
                return false;
            }
        }
        return true;
    }
}
