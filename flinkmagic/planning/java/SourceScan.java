package flinkmagic.planning;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.LambdaFunction;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.StringType;
import scala.collection.Iterator;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/**
 * A text source under filters, perhaps a projection, perhaps an aggregate: which of its columns these read, and what
 * they compute of them that is better kept than computed again.
 */
public class SourceScan {
    /** What takes so much longer to compute than to read that its results are kept as columns. */
    private static final HashSet<String> COSTLY = new HashSet<String>(Arrays.asList(new String[] {
        "DateFormatClass", "FromUnixTime", "GetJsonObject", "JsonToStructs", "Md5", "RLike", "RegExpExtract",
        "RegExpExtractAll", "RegExpReplace", "Sha1", "Sha2", "StringSplit", "ToUnixTimestamp", "UnixTimestamp"
    }));

    /** With these a filter may let a row pass of which nothing could be parsed; see `isServable`. */
    private static final HashSet<String> LET_NULLS_PASS = new HashSet<String>(Arrays.asList(new String[] {
        "AtLeastNNonNulls", "CaseWhen", "Coalesce", "EqualNullSafe", "If", "IsNull", "NaNvl", "Not", "Or"
    }));

    private final LogicalRelation leaf;
    /** The conditions of the filters, the uppermost one first. */
    private final Seq<Expression> conditions;
    private final Project project;
    private final Aggregate aggregate;
    private final LogicalPlan whole;
    /** Whether what an aggregate reads are the source's own columns. */
    private final boolean isPassedOn;

    /**
     * @param rows the source under its filters
     * @param project null if there is none
     * @param aggregate null if there is none
     */
    public SourceScan(LogicalPlan rows, Project project, Aggregate aggregate) {
        ArrayList found = new ArrayList();
        LogicalPlan below = rows;
        while (below instanceof Filter) {
            found.add(((Filter) below).condition());
            below = ((Filter) below).child();
        }
        this.leaf = (LogicalRelation) below;
        this.conditions = PlanNodes.vector(found);
        this.project = project;
        this.aggregate = aggregate;
        this.whole = aggregate != null ? aggregate : project != null ? (LogicalPlan) project : rows;
        this.isPassedOn = project == null || hasOnlyAttributes(project.projectList());
    }

    private static boolean hasOnlyAttributes(Seq expressions) {
        for (Object one : JavaConverters.asJavaIterable(expressions)) {
            if (!(one instanceof Attribute)) {
                return false;
            }
        }
        return true;
    }

    /**
     * The same over kept columns, if these hold all that it needs or are to hold it; else as it is.
     *
     * @param stops whether whoever asks for its rows may not ask for all of them
     */
    public LogicalPlan over(ColumnPlanning.Source source, boolean stops) throws Exception {
        source.noteReader();
        if (!stops) {
            source.readWhole();
        }
        if (!isServable()) {
            return whole;
        }
        LinkedHashMap<Expression, Object> computed = new LinkedHashMap<Expression, Object>();
        LinkedHashMap<Expression, Object> checks = new LinkedHashMap<Expression, Object>();
        findComputed(computed, checks);
        KeptColumns known = null;
        LogicalPlan made = null;
        int most = -1;
        for (KeptColumns one : source.known()) {
            if (most >= computed.size()) {
                break;
            }
            LogicalPlan over = read(one, one.those(both(computed, checks), leaf));
            int held = over == null ? -1 : one.those(computed, leaf).size();
            if (held > most) {
                known = one;
                made = over;
                most = held;
            }
        }
        if (most < computed.size() && !computed.isEmpty() && !stops && !source.isKept()) {
            addChecks(computed, checks);
            Map<Expression, Object> wanted = both(computed, withoutRead(checks, needed(both(computed, checks))));
            KeptColumns own = new KeptColumns(leaf, needed(wanted), wanted);
            if (source.keep(own, own.computedWithout(known), ofAllRows(computed))) {
                return read(own, wanted);
            }
        }
        if (made == null) {
            return whole;
        }
        source.read(known, most);
        return made;
    }

    /** How many of some columns the scan computes of all rows: above its filters it sees those only that pass. */
    private int ofAllRows(Map<Expression, Object> computed) throws Exception {
        if (conditions.isEmpty()) {
            return computed.size();
        }
        LinkedHashMap<Expression, Object> found = new LinkedHashMap<Expression, Object>();
        addComputed(conditions, found, new LinkedHashMap<Expression, Object>());
        return found.size();
    }

    /**
     * Of malformed JSON nothing may be known, and Spark leaves a row as soon as one of its fields fails a filter,
     * before it sees that. Such a row is all null where it is parsed as a whole: no filter may let it pass.
     */
    private boolean isServable() {
        HadoopFsRelation relation = (HadoopFsRelation) leaf.relation();
        return !relation.fileFormat().getClass().getSimpleName().equals("JsonFileFormat") || !mayPassNulls(conditions);
    }

    /** Whether a filter with one of these conditions may let a row pass that is all null. */
    public static boolean mayPassNulls(Seq<Expression> expressions) {
        for (Expression one : JavaConverters.asJavaIterable(expressions)) {
            if (LET_NULLS_PASS.contains(one.getClass().getSimpleName()) || mayPassNulls(one.children())) {
                return true;
            }
        }
        return false;
    }

    private static Map<Expression, Object> both(Map<Expression, Object> one, Map<Expression, Object> other) {
        LinkedHashMap<Expression, Object> found = new LinkedHashMap<Expression, Object>(one);
        found.putAll(other);
        return found;
    }

    // -- what it computes -----------------------------------------------------------------------------

    /**
     * The costly expressions of the source's columns alone that cannot raise, each with the column that it becomes,
     * and the checks of texts for null, which Spark adds to them.
     */
    private void findComputed(Map<Expression, Object> found, Map<Expression, Object> checks) throws Exception {
        addComputed(conditions, found, checks);
        if (project != null) {
            addComputed(project.expressions(), found, checks);
        }
        if (aggregate != null && isPassedOn) {
            addComputed(aggregate.expressions(), found, checks);
        }
    }

    private void addComputed(Seq<Expression> expressions, Map<Expression, Object> found, Map<Expression, Object> checks) throws Exception {
        for (Expression one : JavaConverters.asJavaIterable(expressions)) {
            if (isCheck(one)) {
                add(one, checks);
            } else if (isCostly(one) && one.deterministic() && isOfSource(one) && isTotalThroughout(one)) {
                add(one, found);
            } else {
                addComputed(one.children(), found, checks);
            }
        }
    }

    /** The checks that a query with a filter needs of what is computed. */
    private void addChecks(Map<Expression, Object> computed, Map<Expression, Object> checks) {
        for (Expression each : computed.keySet()) {
            for (Attribute column : JavaConverters.asJavaIterable(each.references())) {
                IsNotNull check = new IsNotNull(column);
                if (isCheck(check)) {
                    add(check, checks);
                }
            }
        }
    }

    /** Equal expressions become one column, also where the names of views before their columns differ. */
    private static void add(Expression expression, Map<Expression, Object> columns) {
        for (Map.Entry<Expression, Object> one : columns.entrySet()) {
            if (expression.semanticEquals((Expression) one.getKey())) {
                columns.put(expression, one.getValue());
                return;
            }
        }
        columns.put(expression, KeptColumns.column(expression));
    }

    private boolean isOfSource(Expression expression) {
        return !expression.references().isEmpty() && expression.references().subsetOf(leaf.outputSet());
    }

    private boolean isCheck(Expression expression) {
        if (!(expression instanceof IsNotNull)) {
            return false;
        }
        Expression child = ((IsNotNull) expression).child();
        return child instanceof Attribute && child.dataType() instanceof StringType && isOfSource(child);
    }

    private static boolean isCostly(Expression expression) {
        boolean ofText = expression instanceof Cast && ((Cast) expression).child().dataType() instanceof StringType
            && !(expression.dataType() instanceof StringType);
        return ofText || COSTLY.contains(expression.getClass().getSimpleName());
    }

    private static boolean isTotalThroughout(Expression expression) throws Exception {
        if (expression instanceof LambdaFunction || expression instanceof SubqueryExpression
            || expression instanceof AggregateExpression || expression instanceof AggregateFunction
            || !TotalExpressions.isTotal(expression)) {
            return false;
        }
        for (Expression child : JavaConverters.asJavaIterable(expression.children())) {
            if (!isTotalThroughout(child)) {
                return false;
            }
        }
        return true;
    }

    // -- what it reads besides ------------------------------------------------------------------------

    /** The positions of the source's columns that are needed if some expressions are there already. */
    private List needed(Map<Expression, Object> computed) {
        HashSet found = new HashSet();
        addNeeded(conditions, computed, found);
        if (aggregate != null && isPassedOn) {
            addNeeded(aggregate.expressions(), computed, found);
        } else {
            addNeeded((Seq) (project != null ? project.expressions() : leaf.output()), computed, found);
        }
        ArrayList<Integer> positions = new ArrayList<Integer>();
        for (int i = 0; i < leaf.output().size(); i++) {
            if (found.contains(((Attribute) leaf.output().apply(i)).exprId())) {
                positions.add(Integer.valueOf(i));
            }
        }
        return positions;
    }

    /** Adds the ids of the columns that some expressions read, apart from what is computed already. */
    private static void addNeeded(Seq<Expression> expressions, Map<Expression, Object> computed, HashSet found) {
        for (Expression one : JavaConverters.asJavaIterable(expressions)) {
            if (one instanceof Attribute) {
                found.add(((Attribute) one).exprId());
            } else if (!computed.containsKey(one)) {
                addNeeded(one.children(), computed, found);
            }
        }
    }

    /** The checks of columns that are not read besides. */
    private Map<Expression, Object> withoutRead(Map<Expression, Object> checks, List positions) {
        LinkedHashMap<Expression, Object> found = new LinkedHashMap<Expression, Object>();
        for (Map.Entry<Expression, Object> one : checks.entrySet()) {
            Attribute column = (Attribute) ((IsNotNull) one.getKey()).child();
            if (!positions.contains(Integer.valueOf(PlanLeaves.position(column, leaf)))) {
                found.put((Expression) one.getKey(), one.getValue());
            }
        }
        return found;
    }

    // -- the same over kept columns -------------------------------------------------------------------

    /** The plan over kept rows; null if they lack a column. */
    private LogicalPlan read(KeptColumns from, Map<Expression, Object> computed) {
        if (!from.hasColumns(needed(computed))) {
            return null;
        }
        LogicalPlan made = from.rows(leaf, computed);
        Iterator each = conditions.reverseIterator();
        while (each.hasNext()) {
            made = new Filter(with((Expression) each.next(), computed), made);
        }
        if (project != null) {
            made = projected(made, computed);
        } else if (aggregate == null) {
            made = new Project(((QueryPlan) leaf).output(), made);  // nobody above expects more
        }
        if (aggregate == null) {
            return made;
        }
        ArrayList<LogicalPlan> child = new ArrayList<LogicalPlan>();
        child.add(made);
        LogicalPlan over = (LogicalPlan) PlanNodes.withChildren(aggregate, child);
        made = (LogicalPlan) over.transformExpressionsDown(new Replacement(new Computed(computed)));
        made.copyTagsFrom(aggregate);
        return made;
    }

    private LogicalPlan projected(LogicalPlan below, Map<Expression, Object> computed) {
        ArrayList list = new ArrayList();
        boolean passes = aggregate != null && isPassedOn;
        HashSet read = new HashSet();
        if (passes) {
            addNeeded(aggregate.expressions(), computed, read);
            list.addAll(new LinkedHashSet(computed.values()));
        }
        for (Object one : JavaConverters.asJavaIterable(project.projectList())) {
            if (!passes || read.contains(((Attribute) one).exprId())) {
                list.add(with((Expression) one, computed));
            }
        }
        Project made = new Project(PlanNodes.vector(list), below);
        made.copyTagsFrom(project);
        return made;
    }

    private static Expression with(Expression expression, Map<Expression, Object> computed) {
        return (Expression) expression.transformDown(new Replacement(new Computed(computed)));
    }

    /** Expressions, each as the column that holds it. */
    static class Computed implements Replacement.Rule {
        private final Map<Expression, Object> columns;

        Computed(Map<Expression, Object> columns) {
            this.columns = columns;
        }

        @Override
        public Object of(Object expression) {
            return columns.get(expression);
        }
    }
}
