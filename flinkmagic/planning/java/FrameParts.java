package flinkmagic.planning;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.TreeSet;

import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.LambdaFunction;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.BaseEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.Deduplicate;
import org.apache.spark.sql.catalyst.plans.logical.Distinct;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionOperation;
import org.apache.spark.sql.catalyst.plans.logical.Sample;
import org.apache.spark.sql.catalyst.plans.logical.SetOperation;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.SampleExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.AccumulatorV2;
import scala.collection.JavaConverters;
import scala.collection.immutable.Nil$;

/**
 * Which columns of a DataFrame a query reads, and whether the query itself computes them for all of its rows.
 *
 * That is proved by the optimised plans: Spark may have put a projection into a guard above it, a filter below it, or
 * have dropped it. If the optimised plan of the DataFrame's columns stands in that of the query as it is, or in a
 * projection that evaluates what it evaluates, Spark computes just these rows for the query.
 */
public class FrameParts {
    /**
     * The positions of the columns that a plan reads of the rows of a relation, with blanks between them; null if it does
     * not read it.
     */
    public String read(SparkPlan plan, InMemoryRelation relation) {
        TreeSet<Integer> found = new TreeSet<Integer>();
        if (!addRead(plan, relation, found)) {
            return null;
        }
        StringBuilder positions = new StringBuilder();
        for (Integer position : found) {
            positions.append(position).append(' ');
        }
        return positions.toString();
    }

    private static boolean addRead(SparkPlan plan, InMemoryRelation relation, TreeSet<Integer> found) {
        boolean reads = false;
        if (plan instanceof InMemoryTableScanExec) {
            InMemoryTableScanExec scan = (InMemoryTableScanExec) plan;
            if (scan.relation().cacheBuilder() == relation.cacheBuilder()) {
                reads = true;
                for (Attribute attribute : JavaConverters.asJavaIterable(scan.attributes())) {
                    found.add(Integer.valueOf(PlanLeaves.position(attribute, scan.relation())));
                }
            }
        }
        for (SparkPlan part : PlanNodes.parts(plan)) {
            reads |= addRead(part, relation, found);
        }
        return reads;
    }

    /**
     * How many rows of a DataFrame a query had when it ran: those of the uppermost operators that give nothing but its
     * columns, and are its own; -1 if none of these has counted any.
     */
    public static long rowsOf(SparkPlan ran, LogicalPlan frame) {
        return rowsOf(ran, frame, reducing(frame));
    }

    private static long rowsOf(SparkPlan ran, LogicalPlan frame, Class own) {
        if (ran.nodeName().indexOf("Limit") >= 0) {
            return -1L;  // what is below stops early
        }
        if (!ran.outputSet().isEmpty() && ran.outputSet().subsetOf(frame.outputSet())) {
            return counted(ran, own);
        }
        long most = -1L;
        for (SparkPlan child : JavaConverters.asJavaIterable(ran.children())) {
            most = Math.max(most, rowsOf(child, frame, own));
        }
        return most;
    }

    private static long counted(SparkPlan ran, Class own) {
        scala.Option metric = ran.metrics().get("numOutputRows");
        Class reduces = reducing(ran);
        if (metric.isDefined() && (reduces == null || reduces == own)) {
            long rows = ((Number) ((AccumulatorV2) metric.get()).value()).longValue();
            return rows > 0L ? rows : -1L;  // another query may have run it
        }
        return ran.children().size() == 1 ? counted((SparkPlan) ran.children().head(), own) : -1L;
    }

    /** The kind of a DataFrame's uppermost operator that may give fewer rows than its input; null if it is another kind. */
    private static Class reducing(LogicalPlan frame) {
        LogicalPlan plan = frame;
        while (hasSameRows(plan)) {
            plan = (LogicalPlan) plan.children().head();
        }
        return plan instanceof Filter ? Filter.class : plan instanceof Sample ? Sample.class
            : plan instanceof Aggregate || plan instanceof Distinct || plan instanceof Deduplicate
                || plan instanceof SetOperation ? Aggregate.class : null;
    }

    /** The kind that may have been planned as this one; null if it is none of them. */
    private static Class reducing(SparkPlan plan) {
        return plan instanceof FilterExec ? Filter.class : plan instanceof SampleExec ? Sample.class
            : plan instanceof BaseAggregateExec ? Aggregate.class : null;
    }

    /** Whether each row of a DataFrame is one of its only source: what a query reads of that counts the rows of both. */
    public static boolean hasOneSource(LogicalPlan frame) {
        LogicalPlan plan = frame;
        while (plan instanceof Filter || hasSameRows(plan)) {
            plan = (LogicalPlan) plan.children().head();
        }
        return plan.children().isEmpty();
    }

    /** Whether an operator gives a row for each row of its input. */
    private static boolean hasSameRows(LogicalPlan plan) {
        return plan instanceof Project || plan instanceof SubqueryAlias || plan instanceof View || plan instanceof Window
            || plan instanceof Sort || plan instanceof RepartitionOperation || plan instanceof BaseEvalPython;
    }

    /**
     * By the position of each DataFrame, with blanks between them, that of another one that has as many rows, because the
     * first is made from it row by row; -1 if none of them is known to.
     */
    public String sameRows(List<LogicalPlan> frames, List<LogicalPlan> others) {
        StringBuilder positions = new StringBuilder();
        for (LogicalPlan frame : frames) {
            LogicalPlan plan = frame;
            while (others.indexOf(plan) < 0 && hasSameRows(plan)) {
                plan = (LogicalPlan) plan.children().head();
            }
            positions.append(others.indexOf(plan)).append(' ');
        }
        return positions.toString();
    }

    /** Whether a query joins rows in a way that the optimizer may leave out, as nobody asks for what it adds. */
    public boolean mayLeaveOut(LogicalPlan query) {
        boolean may = query instanceof Join && !((Join) query).joinType().sql().startsWith("INNER");
        for (LogicalPlan child : JavaConverters.asJavaIterable(query.children())) {
            may = may || mayLeaveOut(child);
        }
        return may;
    }

    /** Whether an optimized query reads all files that a part of it reads, be it as kept rows or columns of them. */
    public boolean readsFilesOf(LogicalPlan query, LogicalPlan part) {
        return files(query).containsAll(files(part));
    }

    /** Whether a part reads files only, and an optimized query none of these. */
    public boolean readsNothingOf(LogicalPlan query, LogicalPlan part) {
        for (LogicalPlan leaf : JavaConverters.asJavaIterable(part.collectLeaves())) {
            if (files(leaf).isEmpty()) {
                return false;
            }
        }
        return Collections.disjoint(files(part), files(query));
    }

    private static HashSet<Object> files(LogicalPlan plan) {
        HashSet<Object> found = new HashSet<Object>();
        addFiles(plan, found);
        return found;
    }

    /** Adds the tables, whose relations the optimizer copies, and the other relations of files. */
    private static void addFiles(QueryPlan plan, HashSet<Object> found) {
        if (plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof HadoopFsRelation) {
            scala.Option table = ((LogicalRelation) plan).catalogTable();
            found.add(table.isDefined()
                ? ((CatalogTable) table.get()).identifier() : ((LogicalRelation) plan).relation());
        } else if (plan instanceof FileSourceScanExec) {
            scala.Option table = ((FileSourceScanExec) plan).tableIdentifier();
            found.add(table.isDefined() ? table.get() : ((FileSourceScanExec) plan).relation());
        } else if (plan instanceof InMemoryRelation) {
            addFiles(((InMemoryRelation) plan).cacheBuilder().cachedPlan(), found);
        } else if (plan instanceof InMemoryTableScanExec) {
            addFiles(((InMemoryTableScanExec) plan).relation(), found);
        }
        for (Object child : JavaConverters.asJavaIterable(plan.children())) {
            addFiles((QueryPlan) child, found);
        }
        for (Object subquery : JavaConverters.asJavaIterable(plan.subqueries())) {
            addFiles((QueryPlan) subquery, found);
        }
    }

    /** A plan of some of the columns, by their positions, and of nothing else. */
    public LogicalPlan only(LogicalPlan plan, List<Integer> columns) {
        ArrayList<Expression> chosen = new ArrayList<Expression>();
        ArrayList<Expression> output = outputOf(plan);
        for (int i = 0; i < output.size(); i++) {
            if (columns.contains(Integer.valueOf(i))) {
                chosen.add(output.get(i));
            }
        }
        return analysed(new Project(PlanNodes.vector(chosen), plan));
    }

    /** A plan of all columns of which only some, by their positions, are computed; the others have no values. */
    public LogicalPlan filled(LogicalPlan plan, List<Integer> columns) {
        ArrayList<Expression> output = outputOf(plan);
        if (columns.size() == output.size()) {
            return plan;
        }
        for (int i = 0; i < output.size(); i++) {
            if (!columns.contains(Integer.valueOf(i))) {
                Attribute column = (Attribute) output.get(i);
                output.set(i, new Alias(
                    Literal$.MODULE$.create(null, column.dataType()), column.name(), NamedExpression$.MODULE$.newExprId(),
                    (scala.collection.immutable.Seq) (Object) Nil$.MODULE$, scala.Option.empty(),
                    (scala.collection.immutable.Seq) (Object) Nil$.MODULE$));
            }
        }
        return analysed(new Project(PlanNodes.vector(output), plan));
    }

    private static LogicalPlan analysed(LogicalPlan plan) {
        plan.setAnalyzed();
        return plan;
    }

    private static ArrayList<Expression> outputOf(LogicalPlan plan) {
        return new ArrayList<Expression>(JavaConverters.seqAsJavaList(plan.output()));
    }

    /**
     * Whether a query computes all rows of a part.
     *
     * @param stopsEarly whether whoever asks for its rows may not ask for all of them
     */
    public boolean computes(LogicalPlan query, LogicalPlan part, boolean stopsEarly) throws Exception {
        LogicalPlan canonical = (LogicalPlan) part.canonicalized();
        if (computes(query, canonical, isDeferred(part), isShuffled(part), stopsEarly, true)) {
            return true;
        }
        if (!TotalPlans.isTotalItself(part)) {
            return false;
        }
        // What is total on top of what the query computes costs nobody a failure.
        for (LogicalPlan child : JavaConverters.asJavaIterable(part.children())) {
            if (!TotalPlans.partialOf(child).isEmpty() && !computes(query, child, stopsEarly)) {
                return false;
            }
        }
        return true;
    }

    /** Whether two parts of a DataFrame have the same partial expressions. */
    public boolean raiseAlike(LogicalPlan one, LogicalPlan other) throws Exception {
        return TotalPlans.partialOf(one).equals(TotalPlans.partialOf(other));
    }

    /** @param takesAll whether all columns of the query's rows are evaluated, or the part does that by itself */
    private static boolean computes(
            LogicalPlan query, LogicalPlan part, boolean isDeferred, boolean isShuffled, boolean stopsEarly,
            boolean takesAll) throws Exception {
        boolean filters = part instanceof Project && query instanceof Filter;  // which evaluates what it asks for
        if (!stopsEarly && (filters || takesAll && query.getClass() == part.getClass())) {
            LogicalPlan canonical = (LogicalPlan) query.canonicalized();
            if (canonical.equals(part) || part instanceof Aggregate && contains((Aggregate) canonical, (Aggregate) part)
                || part instanceof Project && contains(canonical, (Project) part)) {
                return true;
            }
        }
        boolean stops = isLimit(query) || stopsEarly && !readsAll(query, isShuffled);
        boolean takes = !isDeferred || query instanceof Command || takesRows(query) || takesAll && passesOn(query);
        for (LogicalPlan inner : PlanLeaves.parts(query)) {
            if (computes(inner, part, isDeferred, isShuffled, stops, takes)) {
                return true;
            }
        }
        return false;
    }

    /**
     * Whether what may raise is evaluated above a part only, where its columns are used: Spark's generated code puts off
     * projections, also beyond joins, filters and samples, which then guard them.
     */
    private static boolean isDeferred(LogicalPlan part) throws Exception {
        if (part instanceof Project && !TotalPlans.isTotalItself(part)) {
            return true;
        }
        if (part instanceof Aggregate) {  // its functions are evaluated, what is made of their results is put off
            return !addFunctions(((Aggregate) part).aggregateExpressions(), new HashSet<Expression>());
        }
        boolean isDeferred = false;
        for (LogicalPlan child : JavaConverters.asJavaIterable(part.children())) {
            isDeferred = isDeferred || !takesRows(part) && isDeferred(child);
        }
        return isDeferred;
    }

    /** Whether an operator takes whole rows, with all columns evaluated. */
    private static boolean takesRows(LogicalPlan plan) {
        return plan instanceof Aggregate || plan instanceof Sort || plan instanceof Window
            || plan instanceof BaseEvalPython
            || plan instanceof RepartitionOperation && ((RepartitionOperation) plan).shuffle();
    }

    /** Whether an operator gives each row with the columns as they are, to whatever takes its own. */
    private static boolean passesOn(LogicalPlan plan) {
        if (!(plan instanceof Project)) {
            return false;
        }
        for (Object one : JavaConverters.asJavaIterable(plan.expressions())) {
            if (!((one instanceof Alias ? ((Alias) one).child() : one) instanceof Attribute)) {
                return false;
            }
        }
        return true;
    }

    /** Whether an aggregate computes what another one does; its own results may be put into what is above it. */
    private static boolean contains(Aggregate query, Aggregate part) throws Exception {
        if (!query.groupingExpressions().equals(part.groupingExpressions()) || !query.child().equals(part.child())) {
            return false;
        }
        HashSet<Expression> own = new HashSet<Expression>();
        HashSet<Expression> needed = new HashSet<Expression>();
        addFunctions(query.aggregateExpressions(), own);
        return addFunctions(part.aggregateExpressions(), needed) && own.containsAll(needed);
    }

    /**
     * Whether a projection, or a filter, computes all that may raise in a projection: Spark puts two of them together. Of
     * several conditions a filter may leave out some, as soon as another one is false.
     */
    private static boolean contains(LogicalPlan query, Project part) throws Exception {
        boolean evaluates = query instanceof Project || query instanceof Filter;  // what only renames has no canonical form
        if (!evaluates || !query.children().head().equals(part.child())) {
            return false;
        }
        HashSet<Expression> evaluated = new HashSet<Expression>();
        for (Expression one : JavaConverters.asJavaIterable(query.expressions())) {
            evaluated.add(one.canonicalized());
            while (alwaysEvaluatesChild(one)) {
                one = (Expression) one.children().head();
                evaluated.add(one.canonicalized());
            }
        }
        for (Object wanted : JavaConverters.asJavaIterable(part.projectList())) {
            Expression one = wanted instanceof Alias ? ((Alias) wanted).child() : (Expression) wanted;
            if (!TotalPlans.isTotal(one) && !evaluated.contains(one.canonicalized())) {
                return false;
            }
        }
        return true;
    }

    /** Of several inputs an expression may leave out some, as soon as another one is null. */
    private static boolean alwaysEvaluatesChild(Expression expression) throws Exception {
        return expression.children().size() == 1 && !(expression instanceof LambdaFunction)
            && (expression instanceof Cast || TotalExpressions.isTotal(expression));
    }

    /** Adds the functions, which are always evaluated; returns whether everything around them is total. */
    private static boolean addFunctions(scala.collection.Seq expressions, HashSet<Expression> found) throws Exception {
        boolean isTotal = true;
        for (Object each : JavaConverters.asJavaIterable(expressions)) {
            Expression one = (Expression) each;
            if (one instanceof AggregateExpression) {
                found.add(one.canonicalized());
            } else {
                isTotal &= TotalExpressions.isTotal(one);
                isTotal &= addFunctions(one.children(), found);
            }
        }
        return isTotal;
    }

    /** How many bytes a value of each column takes, by the default size of its type. */
    public String widths(StructType schema) {
        StringBuilder widths = new StringBuilder();
        for (StructField field : schema.fields()) {
            widths.append(field.dataType().defaultSize()).append(' ');
        }
        return widths.toString();
    }

    /** Whether an operator may stop asking for rows. */
    public static boolean isLimit(LogicalPlan plan) {
        return plan instanceof LocalLimit || plan instanceof GlobalLimit
            || plan.getClass().getSimpleName().equals("Tail");
    }

    /** Whether an operator surely reads all rows of its inputs for its first one, because an exchange lies between. */
    private static boolean readsAll(LogicalPlan plan, boolean isShuffled) {
        if (plan instanceof Aggregate) {
            return ((Aggregate) plan).groupingExpressions().isEmpty() || !isShuffled;
        }
        return plan instanceof Window && !isShuffled
            || plan instanceof Sort && ((Sort) plan).global()
            || plan instanceof RepartitionOperation && ((RepartitionOperation) plan).shuffle();
    }

    /** The same of an operator with what is below it. */
    public static boolean readsAll(LogicalPlan plan) {
        return readsAll(plan, plan.children().size() != 1 || isShuffled((LogicalPlan) plan.children().head()));
    }

    /** Whether rows may be where an aggregate above needs them already. */
    private static boolean isShuffled(LogicalPlan plan) {
        if (plan instanceof Aggregate || plan instanceof Join || plan instanceof Window
            || plan instanceof RepartitionOperation) {
            return true;
        }
        for (LogicalPlan child : JavaConverters.asJavaIterable(plan.children())) {
            if (isShuffled(child)) {
                return true;
            }
        }
        return plan.children().isEmpty() && plan instanceof InMemoryRelation;
    }
}
