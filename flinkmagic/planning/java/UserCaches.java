package flinkmagic.planning;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.HashSet;
import java.util.List;

import flinkmagic.jvm.Reflect;
import org.apache.spark.Dependency;
import org.apache.spark.SparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.columnar.CachedRDDBuilder;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.status.api.v1.StageData;
import org.apache.spark.status.api.v1.StageStatus;
import org.apache.spark.status.api.v1.TaskStatus;
import scala.Option;
import scala.collection.JavaConverters;

/**
 * Caches of the user's, whose rows Spark computes when they are read first. They stay the user's: Spark fills them,
 * counts what it has of them, and drops them.
 *
 * Seen on Spark 3.5 and 4.3.
 */
public class UserCaches {
    /**
     * What a builder has of its own plan. The rest is what it was made with, or what it knows of its batches: which they
     * are and how many, by accumulators that the batches add to. Versions of Spark differ in those.
     */
    private static final List<String> OF_PLAN = Arrays.asList(
        new String[] {"cachedPlan", "cachedName", "logicalPlan", "supportsColumnarInput"});

    /**
     * Whether nothing has read a cache yet, and what its plan says of partitions and order holds for rows of another run,
     * too: an adaptive plan knows them when it has run, and until then says how it might.
     */
    public boolean mayTakeRows(CachedRDDBuilder builder) throws Exception {
        SparkPlan plan = builder.cachedPlan();
        boolean saysNothing = plan.outputPartitioning() instanceof UnknownPartitioning && plan.outputOrdering().isEmpty();
        return batches(builder) == null && (saysNothing || !isAdaptive(plan));
    }

    private static boolean isAdaptive(SparkPlan plan) {
        if (plan instanceof AdaptiveSparkPlanExec) {
            return true;
        }
        if (plan instanceof InMemoryTableScanExec) {
            return isAdaptive(((InMemoryTableScanExec) plan).relation().cacheBuilder().cachedPlan());
        }
        for (Object child : JavaConverters.asJavaIterable(plan.children())) {
            if (isAdaptive((SparkPlan) child)) {
                return true;
            }
        }
        return false;
    }

    /**
     * Makes a cache that nothing has read yet take its rows from elsewhere instead of its plan; starts nothing.
     *
     * @param rows in the partitions and the order that the plan gives them
     * @return whether it does: not if the plan says that there are other partitions
     */
    public boolean fillFrom(CachedRDDBuilder builder, RDD rows) throws Exception {
        SparkPlan plan = builder.cachedPlan();
        Partitioning partitioning = plan.outputPartitioning();
        boolean isKnown = !(partitioning instanceof UnknownPartitioning);
        if (batches(builder) != null || isKnown && partitioning.numPartitions() != rows.getNumPartitions()) {
            return false;
        }
        Option before = PlanRebuilder.enter(plan);
        try {
            CachedRDDBuilder other = PlanNodes.withPlan(builder, PlanNodes.scanOver(plan, rows, partitioning));
            RDD batches = other.cachedColumnBuffers();
            batches.setName(builder.cachedName());
            for (Field field : CachedRDDBuilder.class.getDeclaredFields()) {
                if (!Modifier.isStatic(field.getModifiers()) && !OF_PLAN.contains(field.getName())) {
                    field.setAccessible(true);
                    field.set(builder, field.get(other));
                }
            }
            return true;
        } finally {
            PlanRebuilder.leave(before);
        }
    }

    /**
     * How many seconds the stages took that have filled a cache: the first one that has read all of it, and those before
     * that made what it is made of. 0 if none is known.
     */
    public double secondsToFill(SparkContext context, CachedRDDBuilder builder) throws Exception {
        RDD batches = batches(builder);
        if (batches == null) {
            return 0;
        }
        ArrayList<StageData> complete = new ArrayList<StageData>();
        int last = -1;
        scala.collection.Seq known = context.statusStore().stageList(
            new ArrayList<StageStatus>(), false, false, new double[0], new ArrayList<TaskStatus>());
        for (Object one : JavaConverters.asJavaIterable(known)) {
            StageData stage = (StageData) one;
            if (stage.status() == StageStatus.COMPLETE) {
                complete.add(stage);
                boolean hasReadAll = stage.rddIds().contains(Integer.valueOf(batches.id()))
                    && stage.numCompleteTasks() >= batches.getNumPartitions();
                last = hasReadAll && (last < 0 || stage.stageId() < last) ? stage.stageId() : last;
            }
        }
        HashSet<Integer> made = madeOf(batches);
        long milliseconds = 0;
        for (StageData stage : complete) {
            boolean isKnown = stage.submissionTime().isDefined() && stage.completionTime().isDefined();
            if (isKnown && stage.stageId() <= last && hasAny(stage, made)) {
                milliseconds += ((Date) stage.completionTime().get()).getTime();
                milliseconds -= ((Date) stage.submissionTime().get()).getTime();
            }
        }
        return milliseconds / 1000.0;
    }

    /** The numbers of an RDD and of all that it is made of, which may be too deep for calls within calls. */
    private static HashSet<Integer> madeOf(RDD rdd) {
        HashSet<Integer> numbers = new HashSet<Integer>();
        ArrayDeque<RDD> left = new ArrayDeque<RDD>();
        left.add(rdd);
        while (!left.isEmpty()) {
            RDD next = (RDD) left.remove();
            if (numbers.add(Integer.valueOf(next.id()))) {
                for (Object dependency : JavaConverters.asJavaIterable(next.dependencies())) {
                    left.add(((Dependency) dependency).rdd());
                }
            }
        }
        return numbers;
    }

    private static boolean hasAny(StageData stage, HashSet<Integer> numbers) {
        for (Object number : JavaConverters.asJavaIterable(stage.rddIds())) {
            if (numbers.contains(number)) {
                return true;
            }
        }
        return false;
    }

    private static RDD batches(CachedRDDBuilder builder) throws Exception {
        return (RDD) Reflect.field(CachedRDDBuilder.class, "_cachedColumnBuffers").get(builder);
    }
}
