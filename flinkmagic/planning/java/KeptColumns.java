package flinkmagic.planning;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.package$;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.QueryPlan$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.CommandExecutionMode$;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.columnar.InMemoryRelation$;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.storage.StorageLevel;
import scala.collection.immutable.Nil$;

/**
 * Columns of one source that are kept together, as a query reads them: those of its files, by position, and computed ones,
 * by expression. Another query may keep others.
 */
public class KeptColumns {
    private final LogicalRelation leaf;
    private InMemoryRelation relation;
    /** For each column of the relation: an Integer, or a normalised expression, which is equal for all queries. */
    private final ArrayList<Object> slots = new ArrayList<Object>();
    /** By normalised expression, the one that computes it of the leaf's columns. */
    private final HashMap<Object, Expression> values = new HashMap<Object, Expression>();

    /**
     * @param leaf the source, as a query reads it
     * @param positions the columns that the query needs
     * @param computed the expressions that it needs, as keys
     */
    public KeptColumns(LogicalRelation leaf, List positions, Map<Expression, Object> computed) {
        this.leaf = leaf;
        slots.addAll(positions);
        for (Expression value : computed.keySet()) {
            Expression slot = normalised(value, leaf);
            if (!slots.contains(slot)) {
                slots.add(slot);
                values.put(slot, value);
            }
        }
    }

    /**
     * How much it is to store them, as a share of storing all columns of the source. A line has some hundred characters:
     * a text that is computed of it is taken for a quarter of them, anything else for an eighth, a check for nothing.
     */
    public double share() {
        double share = 0.0;
        for (Object slot : slots) {
            share += slot instanceof Integer ? 1.0 / leaf.output().size()
                : slot instanceof IsNotNull ? 0.0
                : ((Expression) slot).dataType() instanceof StringType ? 0.25 : 0.125;
        }
        return Math.min(share, 1.0);
    }

    /** The computed ones, apart from checks. */
    public ArrayList<Object> computed() {
        ArrayList<Object> found = new ArrayList<Object>();
        for (Object slot : slots) {
            if (!(slot instanceof Integer || slot instanceof IsNotNull)) {
                found.add(slot);
            }
        }
        return found;
    }

    /** Tells them from others of the source. */
    public String name() {
        return Integer.toHexString(new HashSet(slots).hashCode());
    }

    /** Has them kept while a query reads them that is planned on this session. */
    public void plan(SessionState state, StorageLevel level, String name) throws Exception {
        ArrayList columns = new ArrayList();
        for (Object slot : slots) {
            Expression value = (Expression) values.get(slot);
            columns.add(value == null ? leaf.output().apply(((Integer) slot).intValue()) : new Alias(
                value, "computed", NamedExpression$.MODULE$.newExprId(), (scala.collection.immutable.Seq) (Object) Nil$.MODULE$,
                scala.Option.empty(), (scala.collection.immutable.Seq) (Object) Nil$.MODULE$));
        }
        LogicalPlan query = new Project(PlanNodes.vector(columns), leaf);
        query.setAnalyzed();
        relation = ExactBatchSerializer.use(InMemoryRelation$.MODULE$.apply(
            level, state.executePlan(query, CommandExecutionMode$.MODULE$.SKIP()), new scala.Some(name)));
    }

    /** The relation that holds them. */
    public InMemoryRelation relation() {
        return relation;
    }

    /** Whether all of others are among them. */
    public boolean hold(KeptColumns others) {
        return slots.containsAll(others.slots);
    }

    /** The computed ones that are not among others, which may be null. */
    public List<Object> computedWithout(KeptColumns others) {
        ArrayList<Object> found = computed();
        if (others != null) {
            found.removeAll(others.slots);
        }
        return found;
    }

    /** Whether all columns of the files with these positions are kept. */
    public boolean hasColumns(List positions) {
        return slots.containsAll(positions);
    }

    /** Those entries of a query's expressions that are kept. */
    public Map<Expression, Object> those(Map<Expression, Object> computed, LogicalRelation leaf) {
        LinkedHashMap<Expression, Object> found = new LinkedHashMap<Expression, Object>();
        for (Map.Entry<Expression, Object> one : computed.entrySet()) {
            if (slots.contains(normalised((Expression) one.getKey(), leaf))) {
                found.put((Expression) one.getKey(), one.getValue());
            }
        }
        return found;
    }

    /**
     * The rows, as a query reads them.
     *
     * @param computed its expressions, each with the column that it becomes
     */
    public InMemoryRelation rows(LogicalRelation leaf, Map<Expression, Object> computed) {
        HashMap<Object, Object> attributes = new HashMap<Object, Object>();
        for (Map.Entry<Expression, Object> one : computed.entrySet()) {
            attributes.put(normalised((Expression) one.getKey(), leaf), one.getValue());
        }
        ArrayList output = new ArrayList();
        for (Object slot : slots) {
            if (slot instanceof Integer) {
                output.add(leaf.output().apply(((Integer) slot).intValue()));
            } else {
                Object known = attributes.get(slot);
                output.add(known != null ? known : column((Expression) slot));
            }
        }
        return relation.withOutput(PlanNodes.vector(output));
    }

    /** A column that holds the values of an expression. */
    public static AttributeReference column(Expression value) {
        return column("computed", value.dataType(), value.nullable());
    }

    /** A column of its own. */
    public static AttributeReference column(String name, DataType type, boolean isNullable) {
        return new AttributeReference(
            name, type, isNullable, org.apache.spark.sql.types.Metadata$.MODULE$.empty(),
            NamedExpression$.MODULE$.newExprId(), (scala.collection.immutable.Seq) (Object) Nil$.MODULE$);
    }

    private static Expression normalised(Expression expression, LogicalRelation leaf) {
        // LogicalRelation says that it has AttributeReferences, which javac does not take for Attributes.
        return QueryPlan$.MODULE$.normalizeExpressions(
            expression, package$.MODULE$.AttributeSeq(((QueryPlan) leaf).output()));
    }
}
