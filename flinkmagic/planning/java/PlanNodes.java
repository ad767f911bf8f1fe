package flinkmagic.planning;

import java.util.ArrayList;
import java.util.IdentityHashMap;

import flinkmagic.jvm.Reflect;
import org.apache.spark.Partition;
import org.apache.spark.rdd.CoalescedRDD;
import org.apache.spark.rdd.CoalescedRDDPartition;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.RDDScanExec;
import org.apache.spark.sql.execution.ReusedSubqueryExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.columnar.CachedRDDBuilder;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.JavaConverters;

/** Makes nodes of plans from others. */
public class PlanNodes {
    /** A copy of a node, over the same children. */
    public static SparkPlan copy(SparkPlan plan) {
        return (SparkPlan) copyOver(plan, new ArrayList(JavaConverters.seqAsJavaList(plan.children())));
    }

    /**
     * A node over other children; the node itself if they are its own. Spark's `withNewChildren` keeps children that are
     * equal, and two plans of one DataFrame are equal in all but the identity of their exchanges.
     */
    public static TreeNode withChildren(TreeNode plan, ArrayList children) {
        Iterator own = plan.children().iterator();
        boolean areOwn = true;
        for (Object child : children) {
            areOwn = areOwn && child == own.next();
        }
        return areOwn ? plan : copyOver(plan, children);
    }

    private static TreeNode copyOver(TreeNode plan, ArrayList children) {
        TreeNode copied = plan.withNewChildrenInternal(vector(children));
        copied.copyTagsFrom(plan);
        return copied;
    }

    /** The plans that a plan consists of: its inputs, and those in its expressions. */
    public static ArrayList<SparkPlan> parts(SparkPlan plan) {
        ArrayList<SparkPlan> found = new ArrayList<SparkPlan>(JavaConverters.seqAsJavaList(plan.children()));
        found.addAll(JavaConverters.seqAsJavaList(plan.subqueries()));
        return found;
    }

    /** The exchange, or the subquery, that a leaf reads a second time; null if it is no such leaf. */
    public static SparkPlan reused(SparkPlan plan) {
        if (plan instanceof ReusedExchangeExec) {
            return ((ReusedExchangeExec) plan).child();
        }
        return plan instanceof ReusedSubqueryExec ? (SparkPlan) ((ReusedSubqueryExec) plan).child() : null;
    }

    /** Whether a plan contains a node, shared ones and subqueries included. */
    public static boolean holds(SparkPlan plan, SparkPlan sought) {
        if (plan == sought) {
            return true;
        }
        SparkPlan reused = reused(plan);
        if (reused != null) {
            return holds(reused, sought);
        }
        for (SparkPlan part : parts(plan)) {
            if (holds(part, sought)) {
                return true;
            }
        }
        return false;
    }

    /** A scan of rows that exist already, in place of a plan. */
    public static RDDScanExec scanOver(SparkPlan plan, RDD rows, Partitioning partitioning) throws Exception {
        return scanOver(plan, rows, partitioning, plan.outputOrdering());
    }

    /** The same for rows in another order. */
    public static RDDScanExec scanOver(SparkPlan plan, RDD rows, Partitioning partitioning, scala.collection.Seq order)
            throws Exception {
        return (RDDScanExec) Reflect.make(
            RDDScanExec.class, new Object[] {plan.output(), rows, plan.nodeName(), partitioning, order});
    }

    /**
     * Partitions of an RDD put together, by their numbers. `coalesce` would put them together by where they are kept; a
     * coalescer of one's own is sent with each task, to executors that do not have its class.
     */
    public static RDD grouped(RDD rows, ArrayList<int[]> groups) throws Exception {
        Partition[] parts = new Partition[groups.size()];
        for (int i = 0; i < parts.length; i++) {
            parts[i] = new CoalescedRDDPartition(i, rows, (int[]) groups.get(i), Option.empty());
        }
        RDD grouped = new CoalescedRDD(rows, parts.length, Option.empty(), rows.elementClassTag());
        Reflect.field(RDD.class, "partitions_").set(grouped, parts);
        return grouped;
    }

    /** The builder of a relation's rows with another plan below it. */
    public static CachedRDDBuilder withPlan(CachedRDDBuilder builder, SparkPlan plan) throws Exception {
        Object[] arguments = new Object[builder.productArity()];  // 4 on 3.5, 8 on 4.3
        for (int i = 0; i < arguments.length; i++) {
            Object argument = builder.productElement(i);
            arguments[i] = argument == builder.cachedPlan() ? plan : argument;
        }
        return (CachedRDDBuilder) Reflect.make(CachedRDDBuilder.class, arguments);
    }

    /** A plan whose subqueries are replaced, by the plans that they have. */
    public static QueryPlan withNewSubqueryPlans(QueryPlan plan, IdentityHashMap replaced) {
        return plan.transformExpressions(new Replacement(new WithNewPlan(replaced)));
    }

    /** Scala's indexed sequence, of the version that runs. */
    public static scala.collection.immutable.Vector vector(ArrayList items) {
        return JavaConverters.asScalaBuffer(items).toVector();
    }

    /** Expressions over other plans of their subqueries. */
    static class WithNewPlan implements Replacement.Rule {
        private final IdentityHashMap replaced;

        WithNewPlan(IdentityHashMap replaced) {
            this.replaced = replaced;
        }

        @Override
        public Object of(Object expression) {
            if (!(expression instanceof PlanExpression)) {
                return null;
            }
            PlanExpression subquery = (PlanExpression) expression;
            Object plan = replaced.get(subquery.plan());
            return plan == null ? null : subquery.withNewPlan((QueryPlan) plan);
        }
    }
}
