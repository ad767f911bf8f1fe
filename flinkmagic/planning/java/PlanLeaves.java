package flinkmagic.planning;

import java.util.ArrayList;
import java.util.regex.Pattern;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.package$;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.ExternalRDD;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.columnar.CachedRDDBuilder;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.collection.JavaConverters;

/** What analysed plans consist of, and what their leaves read. */
public class PlanLeaves {
    /** As `name_of_run` in `plan_reader.py` names what a run keeps; what the user caches has no such name. */
    private static final Pattern NAME_OF_RUN = Pattern.compile(" \\([0-9a-f]{8}\\)$");

    /** Whether a run keeps the rows with this name, not the user. */
    public static boolean isOfRun(String name) {
        return NAME_OF_RUN.matcher(name).find();
    }

    /** The same of what holds the rows. */
    public static boolean isOfRun(CachedRDDBuilder rows) {
        return rows.tableName().isDefined() && isOfRun((String) rows.tableName().get());
    }

    /** The plans that a plan consists of: its inputs, those in its expressions, the query of a command. */
    public static ArrayList<LogicalPlan> parts(LogicalPlan plan) {
        ArrayList<LogicalPlan> found = new ArrayList<LogicalPlan>(JavaConverters.seqAsJavaList(plan.children()));
        found.addAll(JavaConverters.seqAsJavaList(plan.subqueries()));
        if (plan instanceof Command && plan.children().isEmpty()) {
            for (int i = 0; i < plan.productArity(); i++) {
                if (plan.productElement(i) instanceof LogicalPlan) {
                    found.add((LogicalPlan) plan.productElement(i));
                }
            }
        }
        return found;
    }

    /** Adds the leaves of a plan to a list. */
    public static void add(LogicalPlan plan, ArrayList<LogicalPlan> leaves) {
        ArrayList<LogicalPlan> parts = parts(plan);
        if (parts.isEmpty()) {
            leaves.add(plan);
        }
        for (LogicalPlan part : parts) {
            add(part, leaves);
        }
    }

    /** The position of a column among those of a leaf; -1 if it is none of them. */
    public static int position(Attribute column, LogicalPlan leaf) {
        return package$.MODULE$.AttributeSeq(leaf.output()).indexOf(column.exprId());
    }

    /** Whether two leaves read the very same rows. */
    public static boolean readTheSame(Object one, Object other) {
        if (one == other) {
            return true;
        }
        if (one.getClass() != other.getClass()) {
            return false;
        }
        Object source = sourceOf(one);
        return source != null && source == sourceOf(other);
    }

    /** What a leaf and its copies have in common as one object; the class where equal leaves read the same rows. */
    private static Object sourceOf(Object leaf) {
        if (leaf instanceof LogicalRelation) {
            return ((LogicalRelation) leaf).relation();
        }
        if (leaf instanceof DataSourceV2Relation) {
            return ((DataSourceV2Relation) leaf).table();
        }
        if (leaf instanceof LogicalRDD) {
            return ((LogicalRDD) leaf).rdd();
        }
        if (leaf instanceof ExternalRDD) {
            return ((ExternalRDD) leaf).rdd();
        }
        if (leaf instanceof InMemoryRelation) {
            return ((InMemoryRelation) leaf).cacheBuilder();
        }
        if (leaf instanceof LocalRelation) {
            return ((LocalRelation) leaf).data();
        }
        String kind = leaf.getClass().getSimpleName();
        boolean byValue = kind.equals("Range") || kind.startsWith("OneRowRelation") || kind.equals("CTERelationRef");
        return byValue ? leaf.getClass() : null;
    }
}
