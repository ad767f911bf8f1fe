package flinkmagic.planning;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.IdentityHashMap;

import flinkmagic.jvm.Reflect;
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
import scala.collection.Iterator;

/** Makes nodes of plans from others. */
public class PlanNodes {
    /** A copy of a node, over the same children. */
    public static SparkPlan copy(SparkPlan plan) {
        ArrayList children = new ArrayList();
        PlanLeaves.addAll(children, plan.children().iterator());
        return (SparkPlan) withChildren(plan, children);
    }

    /** A copy of a node, over other children. */
    public static TreeNode withChildren(TreeNode plan, ArrayList children) {
        TreeNode copied = plan.withNewChildrenInternal(vector(children));
        copied.copyTagsFrom(plan);
        return copied;
    }

    /** Whether a plan contains a node, shared ones and subqueries included. */
    public static boolean holds(SparkPlan plan, SparkPlan sought) {
        if (plan == sought) {
            return true;
        }
        if (plan instanceof ReusedExchangeExec) {
            return holds((SparkPlan) ((ReusedExchangeExec) plan).child(), sought);
        }
        if (plan instanceof ReusedSubqueryExec) {
            return holds((SparkPlan) ((ReusedSubqueryExec) plan).child(), sought);
        }
        return anyHolds(plan.children().iterator(), sought) || anyHolds(plan.subqueries().iterator(), sought);
    }

    private static boolean anyHolds(Iterator plans, SparkPlan sought) {
        while (plans.hasNext()) {
            if (holds((SparkPlan) plans.next(), sought)) {
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

    /** The builder of a relation's rows with another plan below it. */
    public static CachedRDDBuilder withPlan(CachedRDDBuilder builder, SparkPlan plan) throws Exception {
        Constructor constructor = CachedRDDBuilder.class.getConstructors()[0];
        Object[] arguments = new Object[builder.productArity()];  // 4 on 3.5, 8 on 4.3
        for (int i = 0; i < arguments.length; i++) {
            Object argument = builder.productElement(i);
            arguments[i] = argument == builder.cachedPlan() ? plan : argument;
        }
        return (CachedRDDBuilder) constructor.newInstance(arguments);
    }

    /** A plan whose subqueries are replaced, by the plans that they have. */
    public static QueryPlan withNewSubqueryPlans(QueryPlan plan, IdentityHashMap replaced) {
        return plan.transformExpressions(new Replacement(new WithNewPlan(replaced)));
    }

    /** Scala's indexed sequence, of the version that runs. */
    public static scala.collection.immutable.Vector vector(ArrayList items) {
        return LeafPartitions.list(items).toVector();
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
