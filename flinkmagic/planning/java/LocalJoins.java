package flinkmagic.planning;

import java.util.ArrayList;
import java.util.HashMap;

import flinkmagic.jvm.Reflect;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Unevaluable;
import org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation$;
import org.apache.spark.sql.catalyst.plans.InnerLike;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.unsafe.Platform;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/**
 * Joins of few rows that the driver holds, evaluated while a query is planned: then they need no Spark job.
 *
 * Spark's `ConvertToLocalRelation` evaluates projections, filters and limits of a local relation, but no join. Seen on
 * Spark 3.5.9 and 4.3.0.
 */
public class LocalJoins {
    /** Of two sides, and rows that they come to: more are faster joined, and read, by tasks. */
    private static final long MOST_PAIRS = 10000;
    private static final int MOST_ROWS = 1000;

    /** An optimised plan without such joins, and what stood on them alone; null if it has none. */
    public static LogicalPlan evaluated(LogicalPlan plan) {
        LogicalPlan left = plan;
        try {
            for (LogicalPlan before = null; left != before; ) {
                before = left;
                LogicalPlan joined = (LogicalPlan) left.transformUp(new Replacement(new Joins()));
                left = joined == left ? left : ConvertToLocalRelation$.MODULE$.apply(joined);
            }
        } catch (Exception raised) {
            // Spark may evaluate an expression for fewer rows. If it raises there, too, Spark says so itself.
            return null;
        }
        if (left == plan) {
            return null;
        }
        left.setAnalyzed();  // the analyser need not accept what the optimiser makes
        return left;
    }

    /** Says what a join comes to. */
    static class Joins implements Replacement.Rule {
        @Override
        public Object of(Object node) {
            if (!(node instanceof Join) || !(((Join) node).joinType() instanceof InnerLike)) {
                return null;
            }
            Join join = (Join) node;
            Object condition = join.condition().isEmpty() ? null : join.condition().get();
            if (!isHeld(join.left()) || !isHeld(join.right()) || !isEvaluable((Expression) condition)) {
                return null;
            }
            Seq left = (Seq) ((LocalRelation) join.left()).data();
            Seq right = (Seq) ((LocalRelation) join.right()).data();
            if ((long) left.size() * right.size() > MOST_PAIRS) {
                return null;
            }
            try {
                return joined(join, (Expression) condition, left, right);
            } catch (Exception raised) {
                Platform.throwException(raised);
                return null;
            }
        }
    }

    private static boolean isHeld(LogicalPlan side) {
        return side instanceof LocalRelation && !side.isStreaming();
    }

    private static boolean isEvaluable(Expression condition) {
        if (condition == null || condition instanceof Attribute) {
            return true;
        }
        if (condition instanceof Unevaluable || !condition.deterministic()) {
            return false;
        }
        for (Object child : JavaConverters.seqAsJavaList((Seq) condition.children())) {
            if (!isEvaluable((Expression) child)) {
                return false;
            }
        }
        return true;
    }

    private static Object joined(Join join, Expression condition, Seq left, Seq right) throws Exception {
        Seq columns = (Seq) join.output();
        Expression bound = condition == null
            ? null : (Expression) condition.transform(new Replacement(new References(columns)));
        Seq leftColumns = (Seq) join.left().output();
        Seq rightColumns = (Seq) join.right().output();
        ArrayList<InternalRow> rows = new ArrayList<InternalRow>();
        for (Object one : JavaConverters.seqAsJavaList(left)) {
            for (Object other : JavaConverters.seqAsJavaList(right)) {
                Object[] values = new Object[columns.size()];
                read((InternalRow) one, leftColumns, values, 0);
                read((InternalRow) other, rightColumns, values, leftColumns.size());
                InternalRow row = new GenericInternalRow(values);
                if (bound == null || Boolean.TRUE.equals(bound.eval(row))) {
                    rows.add(row);
                }
                if (rows.size() > MOST_ROWS) {
                    return null;
                }
            }
        }
        return Reflect.make(LocalRelation.class, new Object[] {columns, PlanNodes.vector(rows)});
    }

    /** Says of a column where it stands in a row. (Spark's `BindReferences` takes a class that Java cannot name.) */
    static class References implements Replacement.Rule {
        private final HashMap<ExprId, BoundReference> places = new HashMap<ExprId, BoundReference>();

        References(Seq columns) {
            for (int i = 0; i < columns.size(); i++) {
                Attribute column = (Attribute) columns.apply(i);
                places.put(column.exprId(), new BoundReference(i, column.dataType(), column.nullable()));
            }
        }

        @Override
        public Object of(Object expression) {
            return expression instanceof Attribute ? places.get(((Attribute) expression).exprId()) : null;
        }
    }

    private static void read(InternalRow row, Seq columns, Object[] values, int from) {
        for (int i = 0; i < columns.size(); i++) {
            values[from + i] = row.isNullAt(i) ? null : row.get(i, ((Attribute) columns.apply(i)).dataType());
        }
    }
}
